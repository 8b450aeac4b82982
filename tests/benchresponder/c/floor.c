// floor: the least that answering an agent check can cost. One thread, epoll,
// a constant answer, and like the responder it closes after the peer did.
// Usage: floor PORT
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static const char reply[] = "ready 100%\n";

static int listener(int port) {
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(fd, (void *)&a, sizeof a) || listen(fd, 4096)) {
		perror("listening");
		exit(1);
	}
	return fd;
}

static void add(int ep, int fd) {
	struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
	epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e);
}

int main(int argc, char **argv) {
	if (argc != 2)
		return 2;
	int l = listener(atoi(argv[1])), ep = epoll_create1(0);
	struct epoll_event ev[256];
	char buf[512];
	add(ep, l);
	for (;;) {
		int n = epoll_wait(ep, ev, 256, -1);
		for (int i = 0; i < n; i++) {
			int c, fd = ev[i].data.fd;
			if (fd == l) {
				while ((c = accept4(l, 0, 0, SOCK_NONBLOCK)) >= 0)
					add(ep, c);
				continue;
			}
			ssize_t r = read(fd, buf, sizeof buf);
			if (r > 0 && write(fd, reply, sizeof reply - 1) > 0)
				continue;
			if (r < 0 && errno == EAGAIN)
				continue;
			close(fd);
		}
	}
}
