package render_test

import (
	"testing"

	"go.uber.org/goleak"

	"hadrain/internal/testpeer"
)

func TestMain(m *testing.M) {
	testpeer.OwnConsul()
	goleak.VerifyTestMain(m)
}
