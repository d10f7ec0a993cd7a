// Judges pods with pod-security-admission, as the API server's plugin does, for a side-by-side bench. The first argument is a
// file with one pod a line. Each line of standard input asks for one round, "evaluate TIMES" or "parse TIMES"; the answer is a line
// with the nanoseconds a pod, and the number of pods that were allowed.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	kjson "sigs.k8s.io/json"
)

var restricted = api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}

func main() {
	content, err := os.ReadFile(os.Args[1])
	check(err)
	lines := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	pods := make([]*corev1.Pod, len(lines))
	for i, line := range lines {
		pods[i] = parse(line)
	}
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	check(err)
	allows := func(pod *corev1.Pod) int {
		if policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec)).Allowed {
			return 1
		}
		return 0
	}
	rounds := bufio.NewScanner(os.Stdin)
	for rounds.Scan() {
		var what string
		var times int
		_, err := fmt.Sscan(rounds.Text(), &what, &times)
		check(err)
		allowed := 0
		started := time.Now()
		for range times {
			for i := range pods {
				if what == "parse" {
					allowed += allows(parse(lines[i]))
				} else {
					allowed += allows(pods[i])
				}
			}
		}
		took := time.Since(started)
		fmt.Println(float64(took.Nanoseconds())/float64(times*len(pods)), allowed)
	}
	check(rounds.Err())
}

func parse(line []byte) *corev1.Pod {
	pod := &corev1.Pod{}
	check(kjson.UnmarshalCaseSensitivePreserveInts(line, pod))
	return pod
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
