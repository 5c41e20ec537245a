package main

import (
	"bytes"
	"encoding/json"
	"strings"
)

// document makes the OpenAPI document say what the REST front does: a Datum is any JSON value, and 64-bit numbers are
// numbers.
func document(text []byte) ([]byte, error) {
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	numbers(doc)
	doc["info"] = map[string]any{"title": "Tidemark queries", "version": "v1"}
	definitions := doc["definitions"].(map[string]any)
	datum := definitions["v1Datum"].(map[string]any)
	definitions["v1Datum"] = map[string]any{
		"description": datum["description"],
		"title":       "any JSON value; a string of base64 if raw bytes were asked for",
	}
	plainStreams(doc)
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(doc)
	return out.Bytes(), err
}

// numbers makes 64-bit integers, which protobuf's own JSON has as strings, integers.
func numbers(v any) {
	switch v := v.(type) {
	case map[string]any:
		if f := v["format"]; v["type"] == "string" && (f == "int64" || f == "uint64") {
			v["type"] = "integer"
		}
		for _, w := range v {
			numbers(w)
		}
	case []any:
		for _, w := range v {
			numbers(w)
		}
	}
}

// plainStreams takes the wrapper that grpc-gateway puts around the messages of streams off: the front writes them bare.
func plainStreams(v any) {
	switch v := v.(type) {
	case map[string]any:
		if p, ok := v["properties"].(map[string]any); ok && p["result"] != nil {
			if title, _ := v["title"].(string); strings.HasPrefix(title, "Stream result of ") {
				ref := p["result"]
				clear(v)
				for k, w := range ref.(map[string]any) {
					v[k] = w
				}
				return
			}
		}
		for _, w := range v {
			plainStreams(w)
		}
	case []any:
		for _, w := range v {
			plainStreams(w)
		}
	}
}
