//go:build integration

package opensearchsync_test

import (
	"testing"

	"github.com/entail-dev/entail/services/internal/testbed"
)

func TestMain(m *testing.M) { testbed.Main(m) }
