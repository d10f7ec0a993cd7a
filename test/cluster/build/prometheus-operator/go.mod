// Pins the custom resource definitions of the Prometheus operator: only its files are read, nothing of it is built.
module usher.dev/test/prometheus-operator

go 1.26.0

require github.com/prometheus-operator/prometheus-operator v0.85.0
