# Curves at chosen times by R's package survival: summary(survfit, times =, extend = TRUE).
#
#   Rscript km_times.R > km_times.txt
#
# `veteran` and `lung` come with the package; the tests read the same rows from the real data.
suppressPackageStartupMessages(library(survival))
at <- c("time", "n.risk", "n.event", "surv", "std.err", "lower", "upper")
cat("#", at, "\n")
cat("# R", as.character(getRversion()), "survival", as.character(packageVersion("survival")), "\n")
show <- function(name, fit, times) {
  s <- summary(fit, times = times, extend = TRUE)
  cat(name, "\n", sep = "")
  rows <- apply(do.call(cbind, unclass(s)[at]), c(1, 2), format, digits = 7, scientific = FALSE)
  write.table(rows, quote = FALSE, row.names = FALSE, col.names = FALSE)
}
show("veteran", survfit(Surv(time, status) ~ 1, data = veteran), c(1, 30, 60, 90 * (1:10)))
show("lung", survfit(Surv(time, status) ~ 1, data = lung), 365.25)
