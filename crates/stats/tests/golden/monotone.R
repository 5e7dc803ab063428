# Golden values of Cox models without a finite estimate, by R's package survival.
#
#   Rscript monotone.R
#
# writes monotone.json beside itself: for each drawn table the fit with its warnings, and the limits and
# the likelihood-ratio p-value of each coefficient by profile likelihood (the other
# maximised over a range, with `coxph` for the likelihood at given coefficients), which is what
# coxphf::coxphf(firth = FALSE, pl = TRUE) gives. Infinite limits are null.
suppressPackageStartupMessages(library(survival))
here <- dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE)))
num <- function(x) ifelse(is.na(x) | !is.finite(x), "null", formatC(x, digits = 15, width = 1))
vec <- function(x) paste0("[", paste(num(x), collapse = ","), "]")

set.seed(5)
n <- 40
x2 <- round(rnorm(n), 2)
time2 <- round(rexp(n, 0.1 * exp(0.4 * x2)), 1) + 0.1
event2 <- rbinom(n, 1, 0.7)
none <- as.numeric(seq_len(n) %% 4 == 0)
quiet <- event2 * (1 - none) # no event where `none` is 1
near <- 20:1 # one exchange from monotone: large, but finite
near[c(9, 10)] <- near[c(10, 9)]
cases <- list(
  # A covariate ordered exactly as the times.
  ordered = list(time = 20:1, event = rep(1, 20), x = list(x = 1:20)),
  # The same with censored rows.
  censored = list(time = 30:1, event = rep(c(1, 1, 0), 10), x = list(x = 1:30)),
  # Against the order.
  reversed = list(time = 1:12, event = rep(1, 12), x = list(x = 1:12 + 0.5)),
  # A group without events beside a covariate with a finite estimate.
  group = list(time = time2, event = quiet, x = list(none = none, x2 = x2)),
  # The same with ties and strata.
  strata = list(time = ceiling(time2), event = quiet, x = list(none = none, x2 = x2),
                strata = rep(1:2, length.out = n)),
  # Two covariates, neither alone ordered, together so.
  together = list(time = 16:1, event = rep(1, 16),
                  x = list(a = 1:16 + rep(c(3, -3), 8), b = rep(c(3, -3), 8))),
  # Finite, as large as the estimate may be.
  near = list(time = near, event = rep(1, 20), x = list(x = 1:20)),
  # The event itself as a covariate, as R's own collection of failures has it.
  itself = list(time = time2, event = event2, x = list(event = event2, x2 = x2)),
  plain = list(time = time2, event = event2, x = list(none = none, x2 = x2)))

one <- function(name) {
  s <- cases[[name]]
  d <- as.data.frame(s$x)
  p <- ncol(d)
  y <- Surv(s$time, s$event)
  str <- if (is.null(s$strata)) rep(1, nrow(d)) else s$strata
  said <- character()
  fit <- withCallingHandlers(coxph(y ~ as.matrix(d) + strata(str)), warning = function(w) {
    said <<- c(said, conditionMessage(w)); invokeRestart("muffleWarning") })
  many <- coxph.control(iter.max = 60, eps = 1e-13, toler.chol = 1e-14)
  # The likelihood at given coefficients; hazards beyond the range of numbers are as good as none.
  at <- function(b) {
    off <- as.matrix(scale(d, scale = FALSE)) %*% b
    tryCatch(suppressWarnings(coxph(y ~ offset(off) + strata(str)))$loglik[1], error = function(e) -1e9)
  }
  unit <- 1 / sapply(d, sd)
  wide <- 0.25 * 1.6^(0:14)
  wide <- c(-rev(wide), 0, wide)
  best <- function(f, u) {
    l <- sapply(wide * u, f)
    k <- which.max(l)
    near <- wide[pmin(pmax(k + c(-1, 1), 1), length(wide))] * u
    max(l[k], optimize(f, near, maximum = TRUE, tol = 1e-9)$objective)
  }
  profile <- function(j, b) {
    if (p == 1) return(at(b))
    best(function(c) at(if (j == 1) c(b, c) else c(c, b)), unit[3 - j])
  }
  top <- best(function(b) profile(1, b), unit[1])
  limit <- function(j, sign) {
    drop <- function(b) top - profile(j, b) - qchisq(0.95, 1) / 2
    unit <- unit[j]
    # From the likeliest of many values outwards: R's own estimate may be 0 where none is finite.
    from <- (wide * unit)[which.min(sapply(wide * unit, drop))]
    step <- unit; to <- from + sign * step
    while (drop(to) < 0) { step <- step * 2; to <- to + sign * step
      if (abs(to) > 400 * unit) return(Inf * sign) }
    root <- uniroot(drop, sort(c(from, to)), tol = 1e-9)$root
    # Beyond the range in which the other one is sought.
    if (abs(root) > 100 * unit) Inf * sign else root
  }
  rows <- sapply(seq_len(p), function(j) c(limit(j, -1), limit(j, 1),
    pchisq(2 * (top - profile(j, 0)), 1, lower.tail = FALSE)))
  xs <- paste0('"', names(d), '":', sapply(d, vec), collapse = ",")
  paste0('"', name, '":{"time":', vec(s$time), ',"event":', vec(s$event), ',"strata":', vec(str), ',"x":{', xs,
    '},\n "beta":', vec(coef(fit)), ',"se":', vec(sqrt(diag(vcov(fit)))), ',"loglik":', vec(fit$loglik),
    ',"warned":', if (length(said)) "true" else "false",
    ',\n "lower":', vec(rows[1, ]), ',"upper":', vec(rows[2, ]), ',"p":', vec(rows[3, ]), "}")
}
writeLines(paste0("{", paste(sapply(names(cases), one), collapse = ",\n"), "}"), file.path(here, "monotone.json"))
