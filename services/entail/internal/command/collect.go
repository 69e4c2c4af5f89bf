package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/entail-dev/entail/services/entail/internal/exit"
)

// maxPage is the largest page that an API returns.
const maxPage = 1000

// collectPages reads pages of a list until it has limit rows or the list ends. next is the token of the next page.
func collectPages[Row any](limit int, page func(left int32, token string) (rows []Row, next string, err error)) (all []Row, next string, err error) {
	for {
		rows, following, err := page(int32(min(limit-len(all), maxPage)), next)
		if err != nil {
			return nil, "", err
		}
		if all, next = append(all, rows...), following; next == "" || len(all) >= limit {
			return all, next, nil
		}
	}
}

// bindLimitFlag defines --limit, the number of rows after which reading stops. It must be at least 1.
func bindLimitFlag(cmd *cobra.Command, limit *int, enough int, usage string) {
	cmd.Flags().IntVar(limit, "limit", enough, usage)
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if *limit < 1 {
			return fmt.Errorf("%w: --limit %d: at least one", exit.ErrUsage, *limit)
		}
		return nil
	}
}
