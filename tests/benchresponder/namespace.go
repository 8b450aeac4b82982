package main

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"unsafe"
)

// loopbackUp switches on the loopback interface, which is down in a network
// namespace that was just made. Elsewhere it is up, and nothing is to be done.
func loopbackUp() (err error) {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		return fmt.Errorf("looking for the loopback interface: %w", err)
	}
	if lo.Flags&net.FlagUp != 0 {
		return nil
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("switching on the loopback interface: %w", err)
	}
	defer func() { err = errors.Join(err, syscall.Close(fd)) }()
	request := struct { // struct ifreq, netdevice(7)
		name  [16]byte
		flags uint16
		_     [22]byte
	}{flags: syscall.IFF_UP | syscall.IFF_RUNNING}
	copy(request.name[:], "lo")
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return fmt.Errorf("switching on the loopback interface: %w", errno)
	}
	return nil
}
