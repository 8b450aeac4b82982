// load: asks agent checks as HAProxy 2.6 does, system call by system call:
//
//   socket, O_NONBLOCK, TCP_NODELAY, TCP_QUICKACK off, connect; at EPOLLOUT
//   send; at EPOLLIN recv until EAGAIN; then close with a reset, unless the
//   peer closed first.
//
// Usage: load PORT RATE IN-FLIGHT WARMUP SECONDS KEYS
//
// RATE 0 is a closed loop: IN-FLIGHT checks at any time. Otherwise RATE checks
// a second are started, a batch each millisecond, and time counts from when a
// check was due. Prints one line of JSON; times in microseconds.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000ull
#define TIMEOUT (2 * SECOND)

struct check {
	int fd, sent, got;
	uint64_t due, started;
	struct check *prev, *next; // by start, for the timeout
	char buf[128];
};

static struct sockaddr_in peer;
static int ep, keys, nfree;
static struct check **unused, line = {.prev = &line, .next = &line};
static uint64_t done, errors, timeouts, peer_closed, worst;
static int recording;

static uint64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * SECOND + t.tv_nsec;
}

// A histogram of nanoseconds, 64 steps for each power of two.
static uint64_t hist[64 * 64];

static void count(uint64_t ns) {
	int shift = ns < 64 ? 0 : 63 - __builtin_clzll(ns) - 5;
	hist[shift * 64 + (ns >> shift)]++;
	if (ns > worst)
		worst = ns;
	done++;
}

static double quantile(double q) {
	uint64_t seen = 0, want = done * q;
	for (int i = 0; i < 64 * 64; i++)
		if ((seen += hist[i]) > want)
			return ((uint64_t)(i % 64) << (i / 64)) / 1e3;
	return worst / 1e3;
}

static void drop(struct check *c) {
	c->prev->next = c->next;
	c->next->prev = c->prev;
	close(c->fd);
	unused[nfree++] = c;
}

static void reset(struct check *c) {
	struct linger l = {1, 0};
	setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &l, sizeof l);
	drop(c);
}

static void start(uint64_t due) {
	static int one = 1, zero;
	struct check *c = unused[--nfree];
	c->due = due, c->started = now(), c->sent = c->got = 0;
	c->fd = socket(AF_INET, SOCK_STREAM, 0);
	c->prev = line.prev, c->next = &line, line.prev->next = c, line.prev = c;
	fcntl(c->fd, F_SETFL, O_NONBLOCK);
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	setsockopt(c->fd, IPPROTO_TCP, TCP_QUICKACK, &zero, sizeof zero);
	if (connect(c->fd, (void *)&peer, sizeof peer) < 0 && errno != EINPROGRESS) {
		errors++;
		drop(c);
		return;
	}
	struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP, .data.ptr = c};
	epoll_ctl(ep, EPOLL_CTL_ADD, c->fd, &e);
}

static void finish(struct check *c, int closed) {
	if (!c->got || c->buf[c->got - 1] != '\n')
		errors++;
	else if (recording)
		count(now() - c->due);
	peer_closed += closed;
	if (closed)
		drop(c);
	else
		reset(c);
}

static void receive(struct check *c) {
	for (;;) {
		ssize_t n = recv(c->fd, c->buf + c->got, sizeof c->buf - c->got, 0);
		if (n > 0) {
			c->got += n;
			continue;
		}
		if (n == 0) {
			finish(c, 1);
		} else if (errno != EAGAIN) {
			errors++;
			drop(c);
		} else if (c->got && c->buf[c->got - 1] == '\n') {
			finish(c, 0);
		}
		return;
	}
}

static void ask(struct check *c) {
	static unsigned turn;
	char text[64];
	int n = snprintf(text, sizeof text, "web/server-%05u canary\n", turn++ * 7919u % keys);
	if (send(c->fd, text, n, MSG_DONTWAIT | MSG_NOSIGNAL) != n) {
		errors++;
		drop(c);
		return;
	}
	c->sent = 1;
	struct epoll_event e = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = c};
	epoll_ctl(ep, EPOLL_CTL_MOD, c->fd, &e);
	receive(c);
}

static void events(void) {
	struct epoll_event ev[256];
	struct timespec wait = {0, 500000};
	int n = epoll_pwait2(ep, ev, 256, &wait, 0);
	for (int i = 0; i < n; i++) {
		struct check *c = ev[i].data.ptr;
		if (c->sent)
			receive(c);
		else if (ev[i].events & EPOLLOUT && !(ev[i].events & (EPOLLERR | EPOLLHUP)))
			ask(c);
		else if (ev[i].events & (EPOLLERR | EPOLLHUP)) {
			errors++;
			drop(c);
		}
	}
	for (uint64_t t = now(); line.next != &line && t - line.next->started > TIMEOUT;) {
		timeouts++;
		reset(line.next);
	}
}

int main(int argc, char **argv) {
	if (argc != 7)
		return 2;
	double rate = atof(argv[2]);
	int flight = atoi(argv[3]);
	keys = atoi(argv[6]);
	peer.sin_family = AF_INET, peer.sin_port = htons(atoi(argv[1])), peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	prctl(PR_SET_TIMERSLACK, 1000);
	ep = epoll_create1(0);
	struct check *all = calloc(flight, sizeof *all);
	unused = calloc(flight, sizeof *unused);
	for (int i = 0; i < flight; i++)
		unused[nfree++] = &all[i];
	uint64_t begin = now(), from = begin + atof(argv[4]) * SECOND, end = from + atof(argv[5]) * SECOND, skipped = 0, n = 0;
	for (uint64_t t = begin; t < end; t = now()) {
		if (!recording && t >= from) {
			recording = 1;
			errors = timeouts = peer_closed = skipped = 0;
			printf("recording\n");
			fflush(stdout);
		}
		if (rate == 0)
			while (nfree)
				start(now());
		else
			for (uint64_t at; (at = begin + (uint64_t)(n * 1000 / rate) * 1000000) <= t; n++) {
				if (nfree)
					start(at);
				else
					skipped++;
			}
		events();
	}
	printf("{\"done\":%lu,\"seconds\":%g,\"p50\":%.1f,\"p99\":%.1f,\"p999\":%.1f,\"max\":%.1f,"
	       "\"errors\":%lu,\"timeouts\":%lu,\"skipped\":%lu,\"peer_closed\":%lu}\n",
	       done, atof(argv[5]), quantile(.5), quantile(.99), quantile(.999), worst / 1e3, errors, timeouts, skipped, peer_closed);
}
