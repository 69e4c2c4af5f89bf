package rpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxNameLength is the longest name of a Kubernetes object.
const maxNameLength = 253

// authorizationInterceptor checks the right that a procedure needs. For a streaming answer it checks after the request
// was read. It refuses streaming requests.
type authorizationInterceptor struct {
	reviewer *accessReviewer
	access   map[string]AccessRule
	own      func(caller authenticationv1.UserInfo, request any) bool
}

func (a authorizationInterceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		if err := a.checkAccess(ctx, request.Spec().Procedure, request.Any()); err != nil {
			return nil, err
		}
		return next(context.WithValue(ctx, reviewerKey{}, a.reviewer), request)
	}
}

// reviewerKey is the key of the reviewer in the context of a call.
type reviewerKey struct{}

// CheckRight returns an error for the caller if the caller lacks a right beside that of the procedure. Without
// authentication every caller has every right.
func CheckRight(ctx context.Context, right RequiredRight) error {
	reviewer, ok := ctx.Value(reviewerKey{}).(*accessReviewer)
	if !ok {
		return nil
	}
	who, ok := ctx.Value(callerKey{}).(authenticatedCaller)
	if !ok {
		return errors.New("a right is checked without a caller")
	}
	return reviewer.checkRight(ctx, who, right)
}

func (a authorizationInterceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		procedure := conn.Spec().Procedure
		if conn.Spec().StreamType != connect.StreamTypeServer {
			return deniedError("%s is a stream of requests, and callers cannot be authorized for those", procedure)
		}
		check := func(request any) error { return a.checkAccess(ctx, procedure, request) }
		return next(context.WithValue(ctx, reviewerKey{}, a.reviewer), authorizedConn{conn, check})
	}
}

// authorizedConn checks each received request.
type authorizedConn struct {
	connect.StreamingHandlerConn
	check func(request any) error
}

func (g authorizedConn) Receive(request any) error {
	if err := g.StreamingHandlerConn.Receive(request); err != nil {
		return err
	}
	return g.check(request)
}

func (a authorizationInterceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (a authorizationInterceptor) checkAccess(ctx context.Context, procedure string, request any) error {
	who, ok := ctx.Value(callerKey{}).(authenticatedCaller)
	rule := a.access[procedure]
	if !ok || rule == nil {
		return errors.New("call reached authorization without a caller or a rule")
	}
	if a.own != nil && a.own(who.user, request) {
		return nil
	}
	right, err := rule(request)
	if err != nil {
		return err
	}
	return a.reviewer.checkRight(ctx, who, right)
}

// checkRight returns an error for the caller if the caller lacks a right.
func (r *accessReviewer) checkRight(ctx context.Context, caller authenticatedCaller, right RequiredRight) error {
	if len(right.Name) > maxNameLength || len(right.Namespace) > maxNameLength {
		return InvalidError("no object of Kubernetes has a name of more than %d characters", maxNameLength)
	}
	type question struct {
		token tokenDigest
		right RequiredRight
	}
	allowed, err := cachedReview(ctx, r, question{caller.token, right}, func(ctx context.Context) (bool, time.Duration, error) {
		return r.reviewAccess(ctx, caller, right)
	})
	if err == nil && !allowed {
		err = deniedError("user %q may not %s: ask for a role that allows it", caller.user.Username, right)
	}
	return err
}

func (r *accessReviewer) reviewAccess(ctx context.Context, who authenticatedCaller, right RequiredRight) (bool, time.Duration, error) {
	spec := authorizationv1.SubjectAccessReviewSpec{
		User: who.user.Username, UID: who.user.UID, Groups: who.user.Groups, Extra: map[string]authorizationv1.ExtraValue{},
	}
	for key, values := range who.user.Extra {
		spec.Extra[key] = authorizationv1.ExtraValue(values)
	}
	if right.Path != "" {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: right.Path, Verb: right.Verb}
	} else {
		spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Verb: right.Verb, Group: right.Group, Resource: right.Resource, Namespace: right.Namespace, Name: right.Name,
		}
	}
	review, err := r.rights.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return false, 0, reviewError("right", err)
	}
	if !review.Status.Allowed {
		return false, refusalCacheTTL, nil
	}
	return true, grantCacheTTL, nil
}

func deniedError(format string, args ...any) error {
	return connect.NewError(connect.CodePermissionDenied, fmt.Errorf(format, args...))
}
