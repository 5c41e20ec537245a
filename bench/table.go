package main

import (
	"fmt"
	"io"
)

// printTable prints the median of the runs of each system, and what Tidemark reaches of the ceiling: records per CPU
// second, whole and steady.
func printTable(w io.Writer, results []result) {
	type key struct{ workload, system string }
	groups := map[key][]result{}
	var order []key
	for _, r := range results {
		k := key{r.Workload, r.System}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], r)
	}
	middle := func(k key, f func(result) float64) float64 {
		var v []float64
		for _, r := range groups[k] {
			v = append(v, f(r))
		}
		return median(v)
	}
	cpu := func(r result) float64 { return r.CPU }
	steady := func(r result) float64 { return r.SteadyCPU }
	fmt.Fprintln(w, "\n| workload | system | runs | CPU-s/M whole | CPU-s/M steady | k rec/s | wall s | broker CPU-s/M | peak RSS MB | output M | own log MB | foreign cores | of ceiling, whole / steady | check |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, k := range order {
		verdict, reached := "ok", ""
		for _, r := range groups[k] {
			if r.Check != "ok" {
				verdict = r.Check
			}
		}
		if top := (key{k.workload, "ceiling"}); k != top && groups[top] != nil {
			reached = fmt.Sprintf("%.2f / %.2f", middle(top, cpu)/middle(k, cpu), middle(top, steady)/middle(k, steady))
		}
		fmt.Fprintf(w, "| %s | %s | %d | %.2f | %.2f | %.0f | %.0f | %.2f | %.0f | %.2f | %.0f | %.2f | %s | %s |\n",
			k.workload, k.system, len(groups[k]), middle(k, cpu), middle(k, steady),
			middle(k, func(r result) float64 { return r.Rate / 1e3 }),
			middle(k, func(r result) float64 { return r.WallS }),
			middle(k, func(r result) float64 { return r.BrokerCPU }),
			middle(k, func(r result) float64 { return r.RSS }),
			middle(k, func(r result) float64 { return float64(r.Output) / 1e6 }),
			middle(k, func(r result) float64 { return float64(r.OwnLog) / 1e6 }),
			middle(k, func(r result) float64 { return r.ForeignCPU }),
			reached, verdict)
	}
}
