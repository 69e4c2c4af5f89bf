package rpc

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AuthMode is the way in which callers are authenticated.
type AuthMode string

const (
	// AuthKubernetes authenticates bearer tokens by TokenReview and authorizes procedures by SubjectAccessReview.
	AuthKubernetes AuthMode = "kubernetes"
	// AuthNone allows every caller. It is refused on an address that other machines can reach.
	AuthNone AuthMode = "none"
)

// Validate returns an error for an unknown value.
func (a AuthMode) Validate() error {
	if a != AuthKubernetes && a != AuthNone {
		return fmt.Errorf("authentication %q is unknown: use %q or %q", a, AuthKubernetes, AuthNone)
	}
	return nil
}

// checkAddress returns an error if every caller would be allowed on a public address.
func (a AuthMode) checkAddress(address net.Addr) error {
	if a == AuthNone && !isLoopback(address) {
		return fmt.Errorf("authentication %q is for loopback only, and %s can be reached by others: "+
			"listen on 127.0.0.1 or use authentication %q", AuthNone, address, AuthKubernetes)
	}
	return nil
}

func isLoopback(address net.Addr) bool {
	tcp, ok := address.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// authenticatedCaller is the owner of a token. It holds only a hash of the token.
type authenticatedCaller struct {
	token tokenDigest
	user  authenticationv1.UserInfo
}

type tokenDigest [sha256.Size]byte

type callerKey struct{}

// CallerFromContext returns the caller. known is false if callers are not authenticated.
func CallerFromContext(ctx context.Context) (user authenticationv1.UserInfo, known bool) {
	who, known := ctx.Value(callerKey{}).(authenticatedCaller)
	return who.user, known
}

// authenticateCaller adds the caller to the context.
func (r *accessReviewer) authenticateCaller(ctx context.Context, header http.Header) (context.Context, error) {
	scheme, token, _ := strings.Cut(header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" {
		return nil, unauthenticatedError(`no token: send the header "Authorization: Bearer TOKEN" ` +
			"with a token of this Kubernetes cluster, for example from kubectl create token")
	}
	key := tokenDigest(sha256.Sum256([]byte(token)))
	user, err := cachedReview(ctx, r, key, func(ctx context.Context) (*authenticationv1.UserInfo, time.Duration, error) {
		return r.reviewToken(ctx, token)
	})
	if err != nil {
		return nil, err
	}
	if user == nil {
		return nil, unauthenticatedError("the Kubernetes API server does not accept this token: it is malformed, expired or from another cluster")
	}
	return context.WithValue(ctx, callerKey{}, authenticatedCaller{token: key, user: *user}), nil
}

// reviewToken returns the owner of a token, or nil if the API server does not accept the token.
func (r *accessReviewer) reviewToken(ctx context.Context, token string) (*authenticationv1.UserInfo, time.Duration, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	review, err := r.tokens.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return nil, 0, reviewError("token", err)
	}
	if !review.Status.Authenticated {
		return nil, refusalCacheTTL, nil
	}
	return &review.Status.User, grantCacheTTL, nil
}

func unauthenticatedError(text string) error {
	return connect.NewError(connect.CodeUnauthenticated, errors.New(text))
}
