package fga

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/entail-dev/entail/services/internal/reload"
)

const (
	// An issuer is not asked again for a while, however many calls need a token.
	issuerPause = time.Second
	// A token that OpenFGA refuses is replaced, unless it is this new: then another would do no better.
	minTokenAge = 10 * time.Second
)

// grant gets tokens by OAuth client credentials, and keeps each while it is good.
type grant struct {
	cfg    Config
	client *http.Client
	secret *reload.Files[Token]
	// turn is held by whoever uses what follows.
	turn    chan struct{}
	token   *oauth2.Token
	fetched time.Time
	err     error
	again   time.Time
}

func newGrant(c Config, client *http.Client) (*grant, error) {
	secret, err := reload.Open(c.log(), parseToken, c.ClientSecretFile)
	if err != nil {
		return nil, fmt.Errorf("reading --openfga-client-secret-file: %w", err)
	}
	return &grant{cfg: c, client: client, secret: secret, turn: make(chan struct{}, 1)}, nil
}

// get returns the token, after asking for one if need be.
func (g *grant) get(ctx context.Context) (Token, error) {
	select {
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if !g.token.Valid() && !time.Now().Before(g.again) {
		token, err := g.ask(ctx)
		if err != nil && ctx.Err() != nil {
			return "", err // That is the caller's, and nobody else's.
		}
		g.token, g.err, g.fetched, g.again = token, err, time.Now(), time.Now().Add(issuerPause)
	}
	if g.err != nil {
		return "", g.err
	}
	return Token(g.token.AccessToken), nil // Also one that is about to expire when it is new.
}

// forget drops a token that OpenFGA refuses.
func (g *grant) forget() {
	select {
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
	default:
		return // Whoever has the turn asks for one, or has a good one.
	}
	if time.Since(g.fetched) > minTokenAge {
		g.token = nil
	}
}

// ask gets a token from the issuer. What that says besides codes stays out of the error: it may repeat what it was told.
func (g *grant) ask(ctx context.Context) (*oauth2.Token, error) {
	credentials := clientcredentials.Config{
		ClientID: g.cfg.ClientID, ClientSecret: string(g.secret.Get()), TokenURL: g.cfg.TokenURL, Scopes: g.cfg.Scopes,
	}
	if g.cfg.Audience != "" {
		credentials.EndpointParams = url.Values{"audience": {g.cfg.Audience}}
	}
	token, err := credentials.Token(context.WithValue(ctx, oauth2.HTTPClient, g.client))
	if refusal, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		err = fmt.Errorf("%s %.100s", refusal.Response.Status, refusal.ErrorCode)
	}
	if call, ok := errors.AsType[*url.Error](err); ok {
		err = call.Err // Without the URL: there may be a secret in it.
	}
	if err != nil {
		return nil, fmt.Errorf("getting a token at --openfga-token-url: %w", err)
	}
	return token, nil
}
