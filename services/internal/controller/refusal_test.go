package controller

import (
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/entail-dev/entail/services/internal/kube"
)

// refused returns the API server's error for an object that it refuses.
func refused(name, why string) error {
	status := apierrors.NewForbidden(schema.GroupResource{Resource: "trees"}, name, errors.New(why))
	status.ErrStatus.Code = http.StatusForbidden
	return errors.Join(kube.ErrForbidden, status)
}

func TestMissingRightIsLoggedAsOneWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRefusalLog()
		for _, test := range []struct {
			err  error
			want slog.Level
		}{
			{refused("one", "cannot get trees"), slog.LevelWarn},
			{refused("one", "cannot get trees"), slog.LevelDebug},
			{refused("two", "cannot get trees"), slog.LevelDebug},
			{refused("one", "cannot patch trees"), slog.LevelWarn},
			{errors.New("down"), slog.LevelWarn},
			{errors.New("down"), slog.LevelWarn},
		} {
			if got := r.recordAndChooseLevel(test.err); got != test.want {
				t.Errorf("%v: got %s, want %s", test.err, got, test.want)
			}
		}
		<-time.After(refusalInterval + time.Second)
		if got := r.recordAndChooseLevel(refused("one", "cannot get trees")); got != slog.LevelWarn {
			t.Errorf("after a while: got %s", got)
		}
	})
}
