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

	"github.com/entail-dev/entail/services/internal/filewatch"
)

const (
	// issuerPause is the minimum time between two token requests, even if many calls need a token.
	issuerPause = time.Second
	// minTokenAge is the age below which a refused token is kept. OpenFGA would also refuse a replacement.
	minTokenAge = 10 * time.Second
)

// oauthTokenSource gets tokens with OAuth client credentials and caches a token while it is valid.
type oauthTokenSource struct {
	cfg    Config
	client *http.Client
	secret *filewatch.Files[Credential]
	// turn is a lock for the fields below. A caller can wait for the lock with a context.
	turn    chan struct{}
	token   *oauth2.Token
	fetched time.Time
	err     error
	again   time.Time
}

func newOAuthTokenSource(c Config, client *http.Client) (*oauthTokenSource, error) {
	secret, err := filewatch.Open(c.logger(), parseCredential, c.ClientSecretFile)
	if err != nil {
		return nil, fmt.Errorf("reading --openfga-client-secret-file: %w", err)
	}
	return &oauthTokenSource{cfg: c, client: client, secret: secret, turn: make(chan struct{}, 1)}, nil
}

// getToken returns a valid token. It requests a new one if necessary.
func (g *oauthTokenSource) getToken(ctx context.Context) (Credential, error) {
	select {
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if !g.token.Valid() && !time.Now().Before(g.again) {
		token, err := g.requestToken(ctx)
		if err != nil && ctx.Err() != nil {
			return "", err // The token request was canceled by this caller's ctx.
		}
		g.token, g.err, g.fetched, g.again = token, err, time.Now(), time.Now().Add(issuerPause)
	}
	if g.err != nil {
		return "", g.err
	}
	return Credential(g.token.AccessToken), nil // Even a token that expires at once is used for one request.
}

// forgetToken removes a token that OpenFGA refused.
func (g *oauthTokenSource) forgetToken() {
	select {
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
	default:
		return // A concurrent call is requesting a token or has just got one.
	}
	if time.Since(g.fetched) > minTokenAge {
		g.token = nil
	}
}

// requestToken requests a token from the issuer. The error contains only codes, because the issuer's text may repeat
// the secret.
func (g *oauthTokenSource) requestToken(ctx context.Context) (*oauth2.Token, error) {
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
		err = call.Err // The URL can contain a secret.
	}
	if err != nil {
		return nil, fmt.Errorf("getting a token at --openfga-token-url: %w", err)
	}
	return token, nil
}
