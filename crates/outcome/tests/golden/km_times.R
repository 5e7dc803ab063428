# Curves at chosen times by R's package survival: summary(survfit, times =, extend = TRUE).
#
#   Rscript km_times.R > km_times.txt
#
# `veteran` and `lung` come with the package; the tests read the same rows from the real data.
library(survival)
at <- c("time", "n.risk", "n.event", "surv", "std.err", "lower", "upper")
show <- function(name, fit, times) {
  s <- summary(fit, times = times, extend = TRUE)
  cat(name, "\n")
  print(do.call(cbind, unclass(s)[at]), digits = 4)
}
show("veteran", survfit(Surv(time, status) ~ 1, data = veteran), c(1, 30, 60, 90 * (1:10)))
show("lung", survfit(Surv(time, status) ~ 1, data = lung), 365.25)
