// Command olm judges what OLM installs from: `olm bundle FOLDER` runs the validators of operator-framework's API on a bundle,
// `olm validate FOLDER` is opm's own command for a catalog.
package main

import (
	"fmt"
	"os"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	"github.com/operator-framework/operator-registry/cmd/opm/validate"
	"github.com/spf13/cobra"
)

func bundle(_ *cobra.Command, args []string) error {
	found, err := manifests.GetBundleFromDir(args[0])
	if err != nil {
		return err
	}
	validators := validation.DefaultBundleValidators.WithValidators(
		validation.OperatorHubV2Validator,
		validation.StandardCapabilitiesValidator,
		validation.StandardCategoriesValidator,
		validation.ObjectValidator,
		validation.AlphaDeprecatedAPIsValidator,
		validation.GoodPracticesValidator,
	)
	errors := 0
	for _, result := range validators.Validate(found.ObjectsToValidate()...) {
		for _, one := range append(result.Errors, result.Warnings...) {
			fmt.Printf("%s: %s\n", one.Level, one.Detail)
		}
		errors += len(result.Errors)
	}
	if errors > 0 {
		return fmt.Errorf("%d errors in %s", errors, args[0])
	}
	return nil
}

func main() {
	root := &cobra.Command{Use: "olm", SilenceUsage: true}
	root.AddCommand(&cobra.Command{Use: "bundle FOLDER", Args: cobra.ExactArgs(1), RunE: bundle}, validate.NewCmd())
	if root.Execute() != nil {
		os.Exit(1)
	}
}
