// A program that conformance/grafted.py builds inside operator-controller, whose packages are internal.
module podium.dev/conformance/convert

go 1.26.3

require github.com/operator-framework/operator-controller v1.11.0
