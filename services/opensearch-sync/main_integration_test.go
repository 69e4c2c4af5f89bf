//go:build integration

package opensearchsync_test

import (
	"testing"

	"github.com/entail-dev/entail/services/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }
