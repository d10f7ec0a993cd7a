// Evaluates pods with pod-security-admission, and writes the message of a refusal as the API server's plugin does, for a side-by-side bench. The first argument is a
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
	message := 0
	allows := func(pod *corev1.Pod) int {
		result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec))
		if result.Allowed {
			return 1
		}
		// As the plugin's Validate writes it.
		message += len(fmt.Sprintf("violates PodSecurity %q: %s", restricted.String(), result.ForbiddenDetail()))
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
