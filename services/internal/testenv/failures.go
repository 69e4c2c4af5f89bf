package testenv

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var errCut = errors.New("the connection is cut on purpose")

// injectedErrors lists errors for failed calls. before holds those of calls that the server does not receive. after
// holds those of calls that the server executed but whose answer is lost. The last error of each list is that of a
// broken connection.
type injectedErrors struct{ before, after []error }

func kubeErrors() injectedErrors {
	resource := schema.GroupResource{Resource: "something"}
	return injectedErrors{
		before: []error{
			statusFault(apierrors.NewConflict(resource, "x", errors.New("on purpose"))),
			statusFault(apierrors.NewTooManyRequestsError("on purpose")),
			statusFault(apierrors.NewInternalError(errors.New("on purpose"))),
			errCut,
		},
		after: []error{statusFault(apierrors.NewTimeoutError("on purpose", 0)), errCut},
	}
}

// statusFault returns a fault that answers with a status instead of the API server.
func statusFault(answer apierrors.APIStatus) error {
	status := answer.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	body, err := json.Marshal(status)
	return errors.Join(err, InjectedResponseError(int(status.Code), string(body)))
}

func openSearchErrors() injectedErrors {
	return injectedErrors{
		before: []error{
			InjectedResponseError(http.StatusConflict, `{"message":"on purpose"}`),
			InjectedResponseError(http.StatusTooManyRequests, `{"message":"on purpose"}`),
			InjectedResponseError(http.StatusServiceUnavailable, `{"message":"on purpose"}`),
			errCut,
		},
		after: []error{InjectedResponseError(http.StatusGatewayTimeout, `{"message":"on purpose"}`), errCut},
	}
}

// failureInjector makes calls fail at random.
type failureInjector struct {
	// percent is the percentage of calls that fail before the server receives them. The same percentage of the executed
	// calls loses its answer.
	percent atomic.Int32
	// cut makes every call fail.
	cut atomic.Bool
	// count counts the failed calls, except those that failed because of cut.
	count  atomic.Int32
	mu     sync.Mutex
	random *rand.Rand
}

// randomFault returns a fault that fails with a random error of errs.
func (f *failureInjector) randomFault(errs []error) Fault {
	return func(context.Context, string) error {
		if f.cut.Load() {
			return errs[len(errs)-1]
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.random.Int32N(100) >= f.percent.Load() {
			return nil
		}
		f.count.Add(1)
		return errs[f.random.IntN(len(errs))]
	}
}
