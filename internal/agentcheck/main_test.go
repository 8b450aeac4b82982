package agentcheck_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"hadrain/internal/agentcheck"
)

// filesVariable makes the test binary a server with that many descriptors.
const filesVariable = "HADRAIN_TEST_AGENTCHECK_FILES"

func TestMain(m *testing.M) {
	if files := os.Getenv(filesVariable); files != "" {
		if err := serveWithFiles(files); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// serveWithFiles serves on descriptor 3 until it is killed.
func serveWithFiles(files string) error {
	n, err := strconv.ParseUint(files, 10, 32)
	if err != nil {
		return err
	}
	l, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		return err
	}
	s, err := agentcheck.New(agentcheck.Config{Answer: respond, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}, l)
	if err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
		return err
	}
	return s.Serve(context.Background())
}
