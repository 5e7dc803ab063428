# Times R's survival on the tables of benches/peer/survival.py: Rscript survival.R FOLDER
# Processor seconds of one thread, best of three; coxph also computes the concordance, as mithras
# does in its benchmark. agreg-free calls: coxph.fit is the fit alone, without the formula.
library(survival)
folder <- commandArgs(trailingOnly = TRUE)[1]
d <- read.csv(file.path(folder, "cox.csv"))
x <- as.matrix(d[, -(1:2)])
y <- Surv(d$time, d$event)
best <- function(f) min(sapply(1:3, function(i) { t <- system.time(f()); t[["user.self"]] + t[["sys.self"]] }))
out <- c()
for (ties in c("efron", "breslow")) {
  fit <- NULL
  full <- best(function() fit <<- coxph(y ~ x, ties = ties))
  core <- best(function() coxph.fit(x, y, NULL, NULL, NULL, coxph.control(), NULL, ties, NULL, resid = FALSE))
  out <- c(out, sprintf('"%s":{"seconds":%.6f,"seconds_fit_alone":%.6f,"loglik":%.10f,"c":%.10f}',
                        ties, full, core, fit$loglik[2], fit$concordance[["concordance"]]))
}
cat("{", paste(out, collapse = ","), "}\n", sep = "")
