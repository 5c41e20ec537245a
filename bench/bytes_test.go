package main

import "testing"

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{"64KB": 64e3, "10MB": 10e6, "1GB": 1e9, "10": 0, "-1MB": 0, "xMB": 0, "": 0} {
		if got, err := parseBytes(text); got != want || (err != nil) != (want == 0) {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
}
