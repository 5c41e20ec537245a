package client

import (
	"context"

	"github.com/tidemark/tidemark/internal/clock"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// Client asks the instances of one app. It may be used by many goroutines.
//
// Its methods take and return the messages of the API. A question that has an encoded key, or a partition, goes to the
// owner; others go to one of the endpoints, which asks whoever has the rows. The error is an *query.Error. The field
// Redirect of requests is the client's own.
type Client struct {
	cfg    Config
	clock  clock.Clock
	pool   *pool
	keeper *keeper
	next   rotor
}

// New returns a client. It connects with the first question. The error says what is wrong with the configuration.
func New(cfg Config) (*Client, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, clock: clock.Real(), pool: newPool(cfg), keeper: newKeeper()}
	c.next.Store(uint32(cfg.Rand() * float64(len(cfg.Endpoints))))
	return c, nil
}

// Close closes the connections. Calls that run end with an error.
func (c *Client) Close() { c.pool.close() }

// Stores returns the stores that can be asked, by name, as an instance says now.
func (c *Client) Stores(ctx context.Context) ([]*apiv1.Store, error) {
	out, err := ask(ctx, c, target{}, func(ctx context.Context, q apiv1.QueriesClient, _ bool) (*apiv1.ListStoresResponse, error) {
		return q.ListStores(ctx, &apiv1.ListStoresRequest{})
	})
	return out.GetStores(), err
}

// Hosts returns the map of the group, as an instance says now.
func (c *Client) Hosts(ctx context.Context) (*apiv1.GetHostsResponse, error) {
	return ask(ctx, c, target{}, func(ctx context.Context, q apiv1.QueriesClient, _ bool) (*apiv1.GetHostsResponse, error) {
		return q.GetHosts(ctx, &apiv1.GetHostsRequest{})
	})
}

// Get returns the row of a key. A key without a row is the error query.KeyNotFound.
func (c *Client) Get(ctx context.Context, req *apiv1.GetRequest) (*apiv1.GetResponse, error) {
	req = clone(req)
	return ask(ctx, c, target{req.Store, req.RawKey, req.Partition}, func(ctx context.Context, q apiv1.QueriesClient, direct bool) (*apiv1.GetResponse, error) {
		req.Redirect = direct
		return q.Get(ctx, req)
	})
}

// RowsMethod is one of the questions for rows of the API.
type RowsMethod uint8

// The questions for rows.
const (
	Scan RowsMethod = iota
	Windows
	Sessions
	History
	Values
)

func (m RowsMethod) ask(ctx context.Context, q apiv1.QueriesClient, req *apiv1.RowsRequest) (*apiv1.RowsResponse, error) {
	switch m {
	case Windows:
		return q.Windows(ctx, req)
	case Sessions:
		return q.Sessions(ctx, req)
	case History:
		return q.History(ctx, req)
	case Values:
		return q.Values(ctx, req)
	}
	return q.Scan(ctx, req)
}

// Page returns one page of rows.
func (c *Client) Page(ctx context.Context, m RowsMethod, req *apiv1.RowsRequest) (*apiv1.RowsResponse, error) {
	req = clone(req)
	return ask(ctx, c, target{req.Store, req.RawKey, req.Partition}, func(ctx context.Context, q apiv1.QueriesClient, direct bool) (*apiv1.RowsResponse, error) {
		req.Redirect = direct
		return m.ask(ctx, q, req)
	})
}
