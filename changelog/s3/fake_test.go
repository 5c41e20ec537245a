package s3

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// fake is a server that knows as much of S3 as the package uses, and does to each request what the plan says.
type fake struct {
	t *testing.T
	*httptest.Server

	mu       sync.Mutex
	objects  map[string]fakeObject
	uploads  map[string]map[int][]byte
	created  int
	aborted  int
	requests []string // method, operation, key
	headers  []http.Header
	plan     func(n int, op string) trouble // n counts from 1
	page     int
	refuse   map[string][]string // codes with which the next deletions of a key are refused
}

type fakeObject struct {
	data     []byte
	modified time.Time
}

func (o fakeObject) etag() string { return fmt.Sprintf("%q", hex.EncodeToString(md5Sum(o.data))) }

func md5Sum(b []byte) []byte { s := md5.Sum(b); return s[:] }

// trouble is what becomes of one request. The zero trouble leaves it alone.
type trouble struct {
	status int    // answered instead of doing anything
	code   string // of that answer
	lost   bool   // the connection breaks: before anything is done,
	done   bool   // or after, with lost
	cut    int    // bytes of the answer's body after which the connection breaks
}

const fakeBucket = "bucket"

func newFake(t *testing.T) *fake {
	f := &fake{t: t, objects: make(map[string]fakeObject), uploads: make(map[string]map[int][]byte), page: 1000}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

// apiError answers as the server does.
type apiError struct {
	status int
	code   string
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	key := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/"+fakeBucket), "/")
	op := operation(r)
	f.mu.Lock()
	f.requests = append(f.requests, op+" "+key)
	f.headers = append(f.headers, r.Header.Clone())
	var tr trouble
	if f.plan != nil {
		tr = f.plan(len(f.requests), op)
	}
	f.mu.Unlock()
	switch {
	case tr.lost && !tr.done:
		panic(http.ErrAbortHandler)
	case tr.status != 0:
		fail(w, apiError{tr.status, tr.code})
		return
	}
	if bad := verifyBody(r, body); bad.status != 0 {
		fail(w, bad)
		return
	}
	rec := httptest.NewRecorder()
	f.mu.Lock()
	f.serve(rec, r, op, key, body)
	f.mu.Unlock()
	if tr.lost {
		panic(http.ErrAbortHandler)
	}
	answer(w, rec, tr)
}

// answer sends what was recorded, or the beginning of it.
func answer(w http.ResponseWriter, rec *httptest.ResponseRecorder, tr trouble) {
	content := rec.Body.Bytes()
	cut := tr.cut > 0 && tr.cut < len(content)
	maps.Copy(w.Header(), rec.Header())
	if rec.Header().Get("Content-Length") == "" {
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	}
	w.WriteHeader(rec.Code)
	if cut {
		_, _ = w.Write(content[:tr.cut])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(content)
}

func fail(w http.ResponseWriter, e apiError) {
	w.WriteHeader(e.status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>planned</Message></Error>", e.code)
}

func operation(r *http.Request) string {
	q := r.URL.Query()
	switch {
	case r.Method == http.MethodPut && q.Has("partNumber"):
		return "part"
	case r.Method == http.MethodPut:
		return "put"
	case r.Method == http.MethodHead:
		return "head"
	case r.Method == http.MethodGet && q.Has("list-type"):
		return "list"
	case r.Method == http.MethodGet:
		return "get"
	case r.Method == http.MethodPost && q.Has("uploads"):
		return "create"
	case r.Method == http.MethodPost && q.Has("uploadId"):
		return "complete"
	case r.Method == http.MethodPost && q.Has("delete"):
		return "delete"
	case r.Method == http.MethodDelete && q.Has("uploadId"):
		return "abort"
	}
	return "unknown " + r.Method + " " + r.URL.String()
}

// verifyBody holds the body against the sums in the headers, as the real server does.
func verifyBody(r *http.Request, body []byte) apiError {
	if r.Header.Get("Authorization") == "" {
		return apiError{http.StatusForbidden, "AccessDenied"}
	}
	if sum := r.Header.Get("X-Amz-Content-Sha256"); len(sum) == 64 {
		if have := sha256.Sum256(body); sum != hex.EncodeToString(have[:]) {
			return apiError{http.StatusBadRequest, "XAmzContentSHA256Mismatch"}
		}
	}
	if sum := r.Header.Get("X-Amz-Checksum-Crc32c"); sum != "" && sum != crc32c(body) {
		return apiError{http.StatusBadRequest, "BadDigest"}
	}
	return apiError{}
}

func crc32c(b []byte) string {
	sum := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
}

func (f *fake) serve(w *httptest.ResponseRecorder, r *http.Request, op, key string, body []byte) {
	id := r.URL.Query().Get("uploadId")
	switch op {
	case "put":
		f.store(w, r, key, body)
	case "get", "head":
		f.get(w, r, key)
	case "list":
		f.list(w, r)
	case "delete":
		var in struct {
			Object []struct{ Key string }
		}
		if err := xml.Unmarshal(body, &in); err != nil {
			fail(w, apiError{http.StatusBadRequest, "MalformedXML"})
			return
		}
		if len(in.Object) > 1000 {
			fail(w, apiError{http.StatusBadRequest, "MalformedXML"})
			return
		}
		fmt.Fprint(w, "<DeleteResult>")
		for _, o := range in.Object {
			if codes := f.refuse[o.Key]; len(codes) > 0 {
				fmt.Fprintf(w, "<Error><Key>%s</Key><Code>%s</Code><Message>planned</Message></Error>", o.Key, codes[0])
				f.refuse[o.Key] = codes[1:]
				continue
			}
			delete(f.objects, o.Key)
		}
		fmt.Fprint(w, "</DeleteResult>")
	case "create":
		f.created++
		id := strconv.Itoa(f.created)
		f.uploads[id] = make(map[int][]byte)
		fmt.Fprintf(w, "<InitiateMultipartUploadResult><UploadId>%s</UploadId></InitiateMultipartUploadResult>", id)
	case "part":
		n, _ := strconv.Atoi(r.URL.Query().Get("partNumber"))
		if f.uploads[id] == nil {
			fail(w, apiError{http.StatusNotFound, "NoSuchUpload"})
			return
		}
		f.uploads[id][n] = body
		w.Header().Set("ETag", fakeObject{data: body}.etag())
		w.Header().Set("X-Amz-Checksum-Crc32c", r.Header.Get("X-Amz-Checksum-Crc32c"))
	case "complete":
		f.complete(w, r, key, id, body)
	case "abort":
		delete(f.uploads, id)
		f.aborted++
		w.WriteHeader(http.StatusNoContent)
	default:
		f.t.Errorf("request %s", op)
		fail(w, apiError{http.StatusNotImplemented, "NotImplemented"})
	}
}

func (f *fake) store(w http.ResponseWriter, r *http.Request, key string, body []byte) bool {
	if _, ok := f.objects[key]; ok && r.Header.Get("If-None-Match") == "*" {
		fail(w, apiError{http.StatusPreconditionFailed, "PreconditionFailed"})
		return false
	}
	f.objects[key] = fakeObject{body, time.Now()}
	w.Header().Set("ETag", f.objects[key].etag())
	return true
}

func (f *fake) complete(w http.ResponseWriter, r *http.Request, key, id string, body []byte) {
	parts := f.uploads[id]
	if parts == nil {
		fail(w, apiError{http.StatusNotFound, "NoSuchUpload"})
		return
	}
	var in struct {
		Part []struct {
			PartNumber           int
			ETag, ChecksumCRC32C string
		}
	}
	if err := xml.Unmarshal(body, &in); err != nil || len(in.Part) != len(parts) {
		fail(w, apiError{http.StatusBadRequest, "MalformedXML"})
		return
	}
	var all []byte
	for i, p := range in.Part {
		data := parts[p.PartNumber]
		if p.PartNumber != i+1 || p.ETag != (fakeObject{data: data}).etag() || p.ChecksumCRC32C != "" && p.ChecksumCRC32C != crc32c(data) {
			fail(w, apiError{http.StatusBadRequest, "InvalidPart"})
			return
		}
		all = append(all, data...)
	}
	if f.store(w, r, key, all) {
		delete(f.uploads, id)
		fmt.Fprint(w, "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>")
	}
}

func (f *fake) get(w http.ResponseWriter, r *http.Request, key string) {
	o, ok := f.objects[key]
	if !ok {
		fail(w, apiError{http.StatusNotFound, "NoSuchKey"})
		return
	}
	if tag := r.Header.Get("If-Match"); tag != "" && tag != o.etag() {
		fail(w, apiError{http.StatusPreconditionFailed, "PreconditionFailed"})
		return
	}
	w.Header().Set("ETag", o.etag())
	w.Header().Set("Last-Modified", o.modified.UTC().Format(http.TimeFormat))
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Length", strconv.Itoa(len(o.data)))
		return
	}
	if len(o.data) == 0 && r.Header.Get("Range") != "" {
		fail(w, apiError{http.StatusRequestedRangeNotSatisfiable, "InvalidRange"})
		return
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(o.data))
}

func (f *fake) list(w http.ResponseWriter, r *http.Request) {
	type entry struct {
		Key          string
		Size         int
		LastModified string
	}
	var out struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		IsTruncated           bool
		NextContinuationToken string `xml:",omitempty"`
		Contents              []entry
	}
	q := r.URL.Query()
	for _, key := range slices.Sorted(maps.Keys(f.objects)) {
		if !strings.HasPrefix(key, q.Get("prefix")) || key <= q.Get("continuation-token") {
			continue
		}
		if len(out.Contents) == f.page {
			out.IsTruncated, out.NextContinuationToken = true, out.Contents[f.page-1].Key
			break
		}
		o := f.objects[key]
		out.Contents = append(out.Contents, entry{key, len(o.data), o.modified.UTC().Format(time.RFC3339Nano)})
	}
	b, err := xml.Marshal(out)
	if err != nil {
		f.t.Error(err)
	}
	_, _ = w.Write(b)
}
