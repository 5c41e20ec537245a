package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tidemark/tidemark/query"
)

// advice says what to change when a question has no answer.
var advice = map[query.Reason]string{
	query.NoOwner:             "if --endpoint is right, the app moves tasks at the moment: try again, or wait longer with --timeout",
	query.Restoring:           "wait longer with --timeout, or take what is there with --consistency stale",
	query.Moved:               "try again",
	query.TooStale:            "allow more with --max-lag, or wait",
	query.WatermarkNotReached: "wait longer with --timeout, or ask for less with --min-watermark",
	query.PositionNotReached:  "wait longer with --timeout, or look whether --position is one of this app",
	query.Deadline:            "wait longer with --timeout",
	query.Partial:             "take what there is with --allow-partial, or wait longer with --timeout",
	query.TooLarge:            "ask for less with --limit or --fields",
	query.Quota:               "too much is asked at a time: try again later",
	query.WrongKind:           "tidemark stores shows the kind of each store: windows and sessions are shown by tidemark windows, the rest of a key by tidemark scan --key",
	query.TokenMalformed:      "take --position and --token as an answer of this app, to the same question, had them",
	query.Unauthenticated:     "say who you are with --token-file, or with --tls-cert and --tls-key",
}

// advised makes an error one for people: what was wrong, and what to change.
func advised(err error) error {
	var e *query.Error
	if !errors.As(err, &e) {
		return err
	}
	text := e.Message
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if len(e.Missing) > 0 {
		text += ": " + strings.Trim(strings.ReplaceAll(fmt.Sprint(e.Missing), " ", ", "), "[]")
	}
	return &told{text, advice[e.Reason], err}
}

// told is an error for people. It stays what it was for errors.Is.
type told struct {
	text, advice string
	err          error
}

func (e *told) Error() string {
	if e.advice == "" {
		return e.text
	}
	return e.text + "; " + e.advice
}

func (e *told) Unwrap() error { return e.err }
