package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
	"github.com/tidemark/tidemark/serve/client"
)

// asker is what all commands that ask an app have in common: how it is reached, and how the answer is printed.
type asker struct {
	endpoints []string
	via       bool
	timeout   time.Duration
	output    string

	tls                 bool
	ca, cert, key, name string
	tokenFile           string
}

const (
	asTable = "table"
	asJSON  = "json"
)

func (a *asker) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVarP(&a.endpoints, "endpoint", "e", nil, "address of an instance, host:port; may be repeated (required)")
	f.BoolVar(&a.via, "via-endpoint", false, "ask the endpoints only, not the instances they name")
	f.DurationVar(&a.timeout, "timeout", 5*time.Second, "how long to wait for an answer")
	f.StringVarP(&a.output, "output", "o", asTable, "table, or json: one object per line")
	f.BoolVar(&a.tls, "tls", false, "use TLS; the other tls flags imply it")
	f.StringVar(&a.ca, "tls-ca", "", "file with the certificates, PEM, that instances are checked against (default those of the system)")
	f.StringVar(&a.cert, "tls-cert", "", "file with this client's certificate, PEM")
	f.StringVar(&a.key, "tls-key", "", "file with the key of --tls-cert, PEM")
	f.StringVar(&a.name, "tls-server-name", "", "name in the certificates of instances (default the host of the endpoint)")
	f.StringVar(&a.tokenFile, "token-file", "", "file with a bearer token that is sent with every question")
	complete(cmd, "endpoint", cobra.NoFileCompletions)
	complete(cmd, "output", cobra.FixedCompletions([]string{asTable, asJSON}, cobra.ShellCompDirectiveNoFileComp))
}

func complete(cmd *cobra.Command, flag string, fn cobra.CompletionFunc) {
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc(flag, fn))
}

// connect returns a client.
func (a *asker) connect() (*client.Client, error) {
	if len(a.endpoints) == 0 {
		return nil, errors.New("no instance to ask: name one or several with --endpoint host:port")
	}
	for _, e := range a.endpoints {
		if _, _, err := net.SplitHostPort(e); err != nil {
			return nil, fmt.Errorf("--endpoint %s is no host:port: %w", e, err)
		}
	}
	if a.output != asTable && a.output != asJSON {
		return nil, fmt.Errorf("--output %s is none: say table or json", a.output)
	}
	if a.timeout <= 0 {
		return nil, fmt.Errorf("--timeout %s is none: say how long to wait, as 500ms or 10s", a.timeout)
	}
	cfg := client.Config{Endpoints: a.endpoints, ViaEndpoints: a.via, Timeout: a.timeout}
	var err error
	if cfg.TLS, err = a.secure(); err != nil {
		return nil, err
	}
	if a.tokenFile != "" {
		b, err := os.ReadFile(a.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
		if cfg.TLS == nil && !a.loopback() {
			return nil, errors.New("--token-file without --tls would show the token to the network: add --tls")
		}
		cfg.Credentials = bearer(strings.TrimSpace(string(b)))
	}
	return client.New(cfg)
}

// secure returns the TLS configuration, nil for none.
func (a *asker) secure() (*tls.Config, error) {
	if !a.tls && a.ca == "" && a.cert == "" && a.key == "" && a.name == "" {
		return nil, nil
	}
	cfg := &tls.Config{ServerName: a.name, MinVersion: tls.VersionTLS12}
	if a.ca != "" {
		b, err := os.ReadFile(a.ca)
		if err != nil {
			return nil, fmt.Errorf("--tls-ca: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(b) {
			return nil, fmt.Errorf("--tls-ca: %s holds no certificate in PEM", a.ca)
		}
	}
	if (a.cert == "") != (a.key == "") {
		return nil, errors.New("--tls-cert and --tls-key belong together: give both")
	}
	if a.cert != "" {
		c, err := tls.LoadX509KeyPair(a.cert, a.key)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert and --tls-key: %w", err)
		}
		cfg.Certificates = []tls.Certificate{c}
	}
	return cfg, nil
}

// loopback says that no endpoint is on another machine.
func (a *asker) loopback() bool {
	for _, e := range a.endpoints {
		host, _, _ := net.SplitHostPort(e)
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return false
		}
	}
	return true
}

// bearer is a token that is sent with every question.
type bearer string

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

// RequireTransportSecurity is false because connect has looked.
func (b bearer) RequireTransportSecurity() bool { return false }

// run asks: fn has a client and the store, if there is a name of one.
func (a *asker) run(ctx context.Context, store string, fn func(ctx context.Context, c *client.Client, s *apiv1.Store) error) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	var s *apiv1.Store
	if store != "" {
		if s, err = find(ctx, c, store); err != nil {
			return advised(err)
		}
	}
	return advised(fn(ctx, c, s))
}

// find returns the description of a store.
func find(ctx context.Context, c *client.Client, name string) (*apiv1.Store, error) {
	list, err := c.Stores(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, s := range list {
		if s.Id == name {
			return s, nil
		}
		names = append(names, s.Id)
	}
	e := &query.Error{Reason: query.StoreNotFound, Message: fmt.Sprintf("there is no store %q", name)}
	if e.Message += ": the app has none that can be asked"; len(names) > 0 {
		e.Message = fmt.Sprintf("there is no store %q: the app has %s", name, strings.Join(names, ", "))
	}
	return nil, e
}
