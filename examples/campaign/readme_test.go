package main

import (
	"bufio"
	"context"
	"encoding/json/v2"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// The questions of the readme are answered as it says, by the instance it asks.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`\$ curl -sN? 'localhost:707([01])(/[^']*)'\n(.*)\n`).FindAllStringSubmatch(string(text), -1)
	if len(found) < 3 {
		t.Fatalf("%d questions in the readme", len(found))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	dir := t.TempDir()
	out, err := os.Create(filepath.Join(dir, "out.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, options{dir: dir, rate: 1000, every: time.Second, early: time.Second, serve: fmt.Sprintf("127.0.0.1:%d", port)}, out)
	}()
	for _, q := range found {
		url := fmt.Sprintf("http://127.0.0.1:%d%s", port+int(q[1][0]-'0'), q[2])
		got, err := ask(url)
		for deadline := time.After(time.Minute); err != nil; got, err = ask(url) {
			select {
			case <-time.After(50 * time.Millisecond):
			case <-deadline:
				t.Fatalf("%s: %v", url, err)
			case end := <-ended:
				t.Fatalf("the example ended: %v", end)
			}
		}
		var want map[string]any
		if err := json.Unmarshal([]byte(q[3]), &want); err != nil {
			t.Fatalf("the answer to %s in the readme: %v", q[2], err)
		}
		a, b := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))
		if !slices.Equal(a, b) || fmt.Sprint(key(got)) != fmt.Sprint(key(want)) {
			t.Errorf("%s has %v about %v, the readme %v about %v", url, a, key(got), b, key(want))
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// key is the key of the first row of an answer.
func key(answer map[string]any) any {
	row := answer["row"]
	if rows, ok := answer["rows"].([]any); ok && len(rows) > 0 {
		row = rows[0]
	}
	r, _ := row.(map[string]any)
	return r["key"]
}

// ask returns the first line of an answer with a row in it.
func ask(url string) (map[string]any, error) {
	resp, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	line, err := bufio.NewReader(resp.Body).ReadString('\n')
	if err != nil && err != io.EOF {
		return nil, err
	}
	var answer map[string]any
	if err := json.Unmarshal([]byte(strings.TrimSpace(line)), &answer); err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK || key(answer) == nil {
		return nil, fmt.Errorf("%s: %s", resp.Status, line)
	}
	return answer, nil
}
