# Golden values of Cox models that once broke R's package survival, by that package today.
#
#   Rscript fail.R
#
# writes fail.json beside itself. The sources of survival keep such examples in their folder `fail`; its data are not
# taken, each is drawn in the shape that broke the fit:
#   overflow     few times, many ties, a skewed covariate: the first step goes too far     `skewed`
#   infinite1    the event itself as a covariate                                           `itself` in monotone.R
#   nurmikolu    a covariate that is 0 for all but two rows                                `rare`
#   mort (eha)   an interaction with a year of birth that is not centred                   `uncentred`
#   tsagris      many covariates, few events, linear predictors of hundreds                `many`
# Not here, as this program has no such model: epifit and nurmikolu's intervals of time (start and stop),
# model4you (an offset), r_donnell and the rest of tsagris (`survreg`).
suppressPackageStartupMessages(library(survival))
here <- dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE)))
vec <- function(x) paste0("[", paste(signif(as.numeric(x), 15), collapse = ","), "]")

set.seed(11)
i <- 0:2999
n <- 120
ses <- rbinom(n, 1, 0.4)
year <- 1800 + round(runif(n, 0, 20), 2)
rare <- rep(0, n)
rare[c(7, 80)] <- 1
died <- rbinom(n, 1, 0.5)
died[7] <- 1
wide <- replicate(6, round(exp(rnorm(n, 0, 1.5)), 2))
cases <- list(
  # Drawn by the test in the same way.
  skewed = list(time = i %% 48 + 1, event = as.numeric(i %% 5 < 3),
                x = list(x = ifelse(i %% 997 == 3, 4000, ((i * 7919) %% 101) / 50))),
  rare = list(time = round(rexp(n, 0.1), 2) + 0.01, event = died, x = list(x = rare)),
  uncentred = list(time = round(rexp(n, 0.1 * exp(0.5 * ses)), 2) + 0.01, event = rbinom(n, 1, 0.7),
                   x = list(a = ses, b = year, c = ses * year)),
  many = list(time = round(rexp(n, 0.1), 2) + 0.01, event = rbinom(n, 1, 0.15),
              x = setNames(as.data.frame(wide), letters[1:6])))

one <- function(name) {
  s <- cases[[name]]
  d <- as.matrix(as.data.frame(s$x))
  fit <- coxph(Surv(s$time, s$event) ~ d, control = coxph.control(iter.max = 60, eps = 1e-12, toler.chol = 1e-13))
  data <- if (name == "skewed") "" else paste0('"time":', vec(s$time), ',"event":', vec(s$event), ',"x":[',
    paste(apply(d, 2, vec), collapse = ","), '],\n ')
  paste0('"', name, '":{', data, '"beta":', vec(coef(fit)), ',"se":', vec(sqrt(diag(vcov(fit)))),
    ',"loglik":', vec(fit$loglik), "}")
}
writeLines(paste0("{", paste(sapply(names(cases), one), collapse = ",\n"), "}"), file.path(here, "fail.json"))
