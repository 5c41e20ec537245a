package serve

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// pathNames are the store and key of a path whose names have slashes in them. The gateway splits paths after it has
// unescaped them, so that it would take the slash for a separator.
type pathNames struct{ store, key *string }

type pathNamesKey struct{}

// slashes takes names with escaped slashes out of a path, and keeps them in the context.
func slashes(r *http.Request) *http.Request {
	escaped := r.URL.EscapedPath()
	if !strings.Contains(escaped, "%2F") && !strings.Contains(escaped, "%2f") {
		return r
	}
	parts := strings.Split(strings.TrimPrefix(escaped, "/"), "/")
	for i := range parts {
		text, err := url.PathUnescape(parts[i])
		if err != nil {
			return r
		}
		parts[i] = text
	}
	var names pathNames
	if len(parts) < 3 || parts[0] != "v1" || parts[1] != "stores" {
		return r
	}
	if strings.Contains(parts[2], "/") {
		name, verb := parts[2], ""
		if i := strings.LastIndexByte(name, ':'); i >= 0 && len(parts) == 3 {
			name, verb = name[:i], name[i:]
		}
		names.store, parts[2] = &name, "-"+verb
	}
	if len(parts) >= 5 && parts[3] == "keys" && strings.Contains(parts[4], "/") {
		key := parts[4]
		names.key, parts[4] = &key, "-"
	}
	r = r.WithContext(context.WithValue(r.Context(), pathNamesKey{}, names))
	u := *r.URL
	u.Path, u.RawPath = "/"+strings.Join(parts, "/"), ""
	r.URL = &u
	return r
}

// putBack puts names that slashes took out into a request.
func putBack(ctx context.Context, store *string, key **string) {
	names, ok := ctx.Value(pathNamesKey{}).(pathNames)
	if !ok {
		return
	}
	if names.store != nil {
		*store = *names.store
	}
	if names.key != nil && key != nil {
		*key = names.key
	}
}

// restService is the API as the gateway calls it.
type restService struct{ *service }

func (v restService) GetStore(ctx context.Context, r *apiv1.GetStoreRequest) (*apiv1.Store, error) {
	putBack(ctx, &r.Store, nil)
	return v.service.GetStore(ctx, r)
}

func (v restService) Get(ctx context.Context, r *apiv1.GetRequest) (*apiv1.GetResponse, error) {
	putBack(ctx, &r.Store, &r.Key)
	return v.service.Get(ctx, r)
}

func (v restService) MultiGet(ctx context.Context, r *apiv1.MultiGetRequest) (*apiv1.MultiGetResponse, error) {
	putBack(ctx, &r.Store, nil)
	return v.service.MultiGet(ctx, r)
}

func (v restService) Scan(ctx context.Context, r *apiv1.RowsRequest) (*apiv1.RowsResponse, error) {
	putBack(ctx, &r.Store, nil)
	return v.service.Scan(ctx, r)
}

func (v restService) Windows(ctx context.Context, r *apiv1.RowsRequest) (*apiv1.RowsResponse, error) {
	putBack(ctx, &r.Store, &r.Key)
	return v.service.Windows(ctx, r)
}

func (v restService) Sessions(ctx context.Context, r *apiv1.RowsRequest) (*apiv1.RowsResponse, error) {
	putBack(ctx, &r.Store, &r.Key)
	return v.service.Sessions(ctx, r)
}

func (v restService) History(ctx context.Context, r *apiv1.RowsRequest) (*apiv1.RowsResponse, error) {
	putBack(ctx, &r.Store, &r.Key)
	return v.service.History(ctx, r)
}

func (v restService) Values(ctx context.Context, r *apiv1.RowsRequest) (*apiv1.RowsResponse, error) {
	putBack(ctx, &r.Store, &r.Key)
	return v.service.Values(ctx, r)
}
