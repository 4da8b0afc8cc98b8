// Command operator-sdk-generate is `operator-sdk generate bundle` alone, so that our tests can compare with it.
//
// The whole operator-sdk needs modules that have nothing to do with bundles. This module's path lies below
// operator-sdk's, because Go lets only such packages use the internal ones.
package main

import (
	"os"

	"github.com/operator-framework/operator-sdk/internal/cmd/operator-sdk/generate/bundle"
)

func main() {
	if err := bundle.NewCmd().Execute(); err != nil {
		os.Exit(1)
	}
}
