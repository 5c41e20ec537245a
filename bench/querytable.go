package main

import "fmt"

func printQueries(all []queryResult) {
	fmt.Println("\n| phase | k rec/s offered | k rec/s | CPU-s/M | RSS MB | owner p50/p99/p99.9 ms | plain | forwarded | plain | scans | errors | foreign cores |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, r := range all {
		fmt.Printf("| %s | %.0f | %.0f | %.2f | %.0f | %s | %s | %s | %s | %s | %d | %.2f |\n", r.Phase, float64(r.Offered)/1e3, r.Rate/1e3, r.CPU, r.RSS,
			r.Local, r.PlainLocal, r.Forward, r.PlainForward, r.Scans, r.Local.Errors+r.Forward.Errors+r.Scans.Errors, r.Foreign)
	}
	base := (all[0].Rate + all[4].Rate) / 2
	fmt.Printf("\nwith queries: %.3f of the records a second without, with idle watchers as well: %.3f\n", all[2].Rate/base, all[3].Rate/base)
	for _, r := range all[2:4] {
		fmt.Printf("%s, of the plain service at the same time: owner p50 %.2f, p99 %.2f; forwarded p50 %.2f, p99 %.2f\n", r.Phase,
			r.Local.P50/r.PlainLocal.P50, r.Local.P99/r.PlainLocal.P99, r.Forward.P50/r.PlainForward.P50, r.Forward.P99/r.PlainForward.P99)
	}
}

// String is the cell of a table.
func (l latency) String() string {
	if l.N == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f/%.2f/%.2f", l.P50, l.P99, l.P999)
}
