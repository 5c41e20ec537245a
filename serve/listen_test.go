package serve

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/proto"

	"github.com/tidemark/tidemark/internal/clock"
	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// manualClock is a clock whose time a test moves; timers are real.
type manualClock struct {
	clock.Clock
	mu  sync.Mutex
	now time.Time
}

func newManualClock() *manualClock {
	return &manualClock{Clock: clock.Real(), now: time.Now()}
}

func (c *manualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *manualClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// selfSigned returns the pool and the configuration of a server at 127.0.0.1.
func selfSigned(t testing.TB) (*x509.CertPool, *tls.Config) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return pool, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

// With TLS one port serves gRPC, HTTP/1.1 to clients that offer HTTP/2 as well, and forwarded questions.
func TestTLS(t *testing.T) {
	pool, config := selfSigned(t)
	client := &tls.Config{RootCAs: pool}
	var mu sync.Mutex
	secure := 0
	c := newCluster(t, 2, Config{TLS: config, Peer: Peer{TLS: client}, Authenticate: func(_ context.Context, c Caller) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if c.TLS != nil {
			secure++
		}
		return "x", nil
	}})
	c.commit(0, kv("counts", "a", "1"))
	in := c.instances[1]
	conn, err := grpc.NewClient("passthrough:///"+in.endpoint, grpc.WithTransportCredentials(credentials.NewTLS(client)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	out, err := apiv1.NewQueriesClient(conn).Get(context.Background(), &apiv1.GetRequest{Store: "counts", Key: proto.String("a"), Partition: proto.Int32(0)})
	if err != nil || out.Row.Value.GetJson() != "1" {
		t.Errorf("%v %v", out, err)
	}
	transport := &http.Transport{TLSClientConfig: client, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Get("https://" + in.endpoint + "/v1/stores/counts/keys/a?partition=0")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 || !strings.Contains(string(text), `"value":1`) || res.ProtoMajor != 1 {
		t.Errorf("%s %s %v", res.Proto, text, err)
	}
	if secure != 4 {
		t.Errorf("%d questions over TLS, want 2 and 2 forwarded ones", secure)
	}
}

// A connection that says nothing does not keep others out, nor the server from closing.
func TestSilentConnection(t *testing.T) {
	c := newCluster(t, 1, Config{})
	conn, err := net.Dial("tcp", c.instances[0].endpoint)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if code, _, text := c.instances[0].ask(t, "GET", "/healthz", ""); code != 200 || text != "ok\n" {
		t.Errorf("%d %s", code, text)
	}
}

// One that does not finish its header is cut off.
func TestSlowHeader(t *testing.T) {
	c := newCluster(t, 1, Config{Limits: Limits{Header: 50 * time.Millisecond}})
	for _, text := range []string{"", "G", "GET / HTTP/1.1\r\nHost: x\r\n"} {
		conn, err := net.Dial("tcp", c.instances[0].endpoint)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(conn); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Error(err)
		}
		_ = conn.Close()
	}
}

func TestSidePages(t *testing.T) {
	reasons := []string{"task main/3 is restoring"}
	c := newCluster(t, 1, Config{Ready: func() []string { return reasons }})
	in := c.instances[0]
	code, _, text := in.ask(t, "GET", "/readyz", "")
	if code != 503 || !strings.Contains(text, reasons[0]) {
		t.Errorf("%d %s", code, text)
	}
	reasons = nil
	if code, _, text = in.ask(t, "GET", "/readyz", ""); code != 200 || !strings.Contains(text, `"ready":true`) {
		t.Errorf("%d %s", code, text)
	}
	code, _, text = in.ask(t, "GET", "/v1/openapi.json", "")
	var doc struct {
		Swagger string
		Paths   map[string]any
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil || code != 200 || doc.Paths["/v1/stores/{store}/keys/{key}"] == nil {
		t.Errorf("%d %v", code, err)
	}
	for path, want := range map[string]int{"/metrics": 404, "/debug/pprof/": 404, "/v1/nothing": 404, "/": 404} {
		if code, _, text := in.ask(t, "GET", path, ""); code != want {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	if code, _, text = in.ask(t, "DELETE", "/v1/stores/counts", ""); code != 405 && code != 501 {
		t.Errorf("%d %s", code, text)
	}
	code, _, text = in.ask(t, "GET", "/v1/stores", "")
	if code != 200 || !strings.Contains(text, `{"id":"counts","kind":"key-value","sub":"main","partitions":4,"topics":["in"],"key_schema":"string","value_schema":"json"}`) {
		t.Errorf("%d %s", code, text)
	}
	code, _, text = in.ask(t, "GET", "/v1/hosts", "")
	if code != 200 || !strings.Contains(text, `"owners":{"main":{"hosts":[0,0,0,0]}}`) {
		t.Errorf("%d %s", code, text)
	}
}

// Questions that run when the server closes get their answer if they are quick, and a named error if not.
func TestClose(t *testing.T) {
	c := newCluster(t, 1, Config{})
	in := c.instances[0]
	arrived := make(chan bool, 1)
	in.onView = func(query.Task) { arrived <- true }
	done := make(chan error)
	go func() {
		_, err := in.client.Get(context.Background(), &apiv1.GetRequest{Store: "counts", Key: proto.String("a"), MinWatermark: "5", Timeout: "30s"})
		done <- err
	}()
	<-arrived
	in.server.Close()
	err := <-done
	if r := reasonOf(err); r != query.WatermarkNotReached && r != query.NoOwner {
		t.Errorf("%v", err)
	}
	_, err = in.client.ListStores(context.Background(), &apiv1.ListStoresRequest{})
	wantReason(t, err, query.NoOwner)
}

// The end of the caller's context is no error of the server, also when it has a cause, as that of signal.NotifyContext has; what
// ends the listener is one.
func TestServeEnds(t *testing.T) {
	c := newCluster(t, 1, Config{})
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	s, err := New(c.instances[0], Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("terminated"))
	if err := s.Serve(ctx, listen()); err != nil {
		t.Errorf("after the caller's end: %v", err)
	}
	if s, err = New(c.instances[0], Config{}); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := s.Serve(t.Context(), brokenListener{listen(), broken}); !errors.Is(err, broken) {
		t.Errorf("after the listener's: %v", err)
	}
}

type brokenListener struct {
	net.Listener
	err error
}

func (l brokenListener) Accept() (net.Conn, error) { return nil, l.err }
