// Marks the root of the program alone. The build takes the requirements of a release from `../kubernetes*/go.mod` by -modfile.
module usher.dev/test/scheduler-oracle

go 1.26.0
