# Golden values of survival analysis by R's package survival.
#
#   Rscript survival.R DATA_FOLDER
#
# writes survival_synthetic.csv and survival.json beside itself. DATA_FOLDER is the folder `survival`
# of the real data; its tables stay there, only numbers computed from them are written.
library(survival)
args <- commandArgs(trailingOnly = TRUE)
data_dir <- args[1]
here <- dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE)))

# --- a JSON writer: lists with names are objects, vectors are arrays, NA is null ---
num <- function(x) ifelse(is.na(x) | !is.finite(x), "null", formatC(x, digits = 17, width = 1))
json <- function(x) {
  if (is.null(x)) return("null")
  if (is.list(x)) {
    if (is.null(names(x))) return(paste0("[", paste(sapply(x, json), collapse = ","), "]"))
    return(paste0("{", paste0('"', names(x), '":', sapply(x, json), collapse = ",\n"), "}"))
  }
  if (is.matrix(x)) return(json(lapply(seq_len(nrow(x)), function(i) unname(x[i, ]))))
  if (is.logical(x)) v <- ifelse(x, "true", "false")
  else if (is.character(x)) v <- paste0('"', x, '"')
  else v <- num(x)
  if (length(x) == 1 && !inherits(x, "AsIs")) v else paste0("[", paste(v, collapse = ","), "]")
}

# --- the synthetic table: ties, strata, clusters, weights, near-ties, a heavy tail ---
set.seed(11)
n <- 120
syn <- data.frame(
  time = round(rexp(n, 0.1) * 2) / 2 + 0.5, event = rbinom(n, 1, 0.6),
  a = round(rnorm(n, 50, 12), 1), b = rbinom(n, 1, 0.4), c = round(rexp(n) * 10, 2),
  site = sample(1:3, n, TRUE), patient = sample(1:70, n, TRUE),
  copies = sample(1:4, n, TRUE), weight = round(runif(n, 0.2, 3), 3))
syn$time[1:6] <- c(0.1 + 0.2, 0.3, 1.1 + 2.2, 3.3, 3.3, 0.3)
syn$event[1:6] <- 1
syn$time[7] <- 0
syn$event[7] <- 1
syn$time[8] <- 1000
shown <- format(syn, digits = 6, trim = TRUE)
shown$time <- sapply(syn$time, function(t) format(t, digits = if (t == round(t, 6)) 6 else 17))
write.csv(shown, file.path(here, "survival_synthetic.csv"),
          row.names = FALSE, quote = FALSE)
syn <- read.csv(file.path(here, "survival_synthetic.csv"))

arff <- function(file) {
  lines <- readLines(file.path(data_dir, "sksurv", file))
  names <- gsub("'", "", sapply(strsplit(grep("^@attribute", lines, TRUE, value = TRUE), "[ \t]+"), `[`, 2))
  from <- grep("^@data", lines, TRUE)
  body <- lines[(from + 1):length(lines)]
  body <- body[nzchar(body)]
  d <- read.csv(text = body, header = FALSE, na.strings = c("?", "NA"), quote = "'\"", strip.white = TRUE)
  names(d) <- names
  d
}
lifelines <- function(file, ...) read.csv(file.path(data_dir, "lifelines", file), ...)
thca <- read.csv(file.path(data_dir, "TCGA-CDR_THCA.csv"), na.strings = c("#N/A", "NA", ""))
tables <- list(
  "golden/survival_synthetic.csv" = syn,
  "lifelines/lung.csv" = lifelines("lung.csv"),
  "lifelines/gbsg2.csv" = lifelines("gbsg2.csv"),
  "lifelines/rossi.csv" = lifelines("rossi.csv"),
  "lifelines/larynx.csv" = lifelines("larynx.csv"),
  "lifelines/kidney_transplant.csv" = lifelines("kidney_transplant.csv"),
  "lifelines/multicenter_aids_cohort.tsv" = lifelines("multicenter_aids_cohort.tsv", sep = "\t"),
  "TCGA-CDR_THCA.csv" = thca,
  "sksurv/actg320.arff" = arff("actg320.arff"),
  "sksurv/veteran.arff" = arff("veteran.arff"),
  "sksurv/whas500.arff" = arff("whas500.arff"),
  "sksurv/flchain.arff" = arff("flchain.arff"),
  "sksurv/cgvhd.arff" = arff("cgvhd.arff"),
  "sksurv/breast_cancer_GSE7390-metastasis.arff" = arff("breast_cancer_GSE7390-metastasis.arff"))

# Rows where all columns used are there; the event as 0/1; whole-number or fractional weights
# made by rule where `weights` says so.
prepare <- function(s) {
  d <- tables[[s$table]]
  if (!is.null(s$event_value)) {
    e <- d[[s$event]]
    d[[s$event]] <- ifelse(is.na(e), NA, as.integer(as.character(e) == s$event_value))
  } else if (is.logical(d[[s$event]])) d[[s$event]] <- as.integer(d[[s$event]])
  used <- c(s$time, s$event, s$covariates, s$strata, s$cluster, s$group,
            if (!is.null(s$weights) && !(s$weights %in% c("rule3", "rule4"))) s$weights)
  d <- d[complete.cases(d[, used]), ]
  for (v in c(s$time, s$covariates)) if (is.integer(d[[v]])) d[[v]] <- as.numeric(d[[v]])
  i <- seq_len(nrow(d)) - 1
  d$.w <- if (is.null(s$weights)) 1 else if (s$weights == "rule3") 1 + i %% 3
    else if (s$weights == "rule4") 0.5 + (i %% 4) / 3 else as.numeric(d[[s$weights]])
  d
}
some <- function(n, k = 12) unique(round(seq(1, n, length.out = min(n, k))))
bt <- function(x) paste0("`", x, "`")

cox_case <- function(s) {
  d <- prepare(s)
  rhs <- bt(s$covariates)
  if (!is.null(s$strata)) rhs <- c(rhs, paste0("strata(", bt(s$strata), ")"))
  f <- as.formula(paste0("Surv(", bt(s$time), ",", bt(s$event), ") ~ ", paste(rhs, collapse = "+")))
  environment(f) <- environment()
  call <- list(f, data = d, ties = s$ties, x = TRUE)
  if (!is.null(s$weights)) call$weights <- d$.w
  if (!is.null(s$cluster)) call$cluster <- d[[s$cluster]]
  fit <- do.call(coxph, call)
  sm <- summary(fit)
  z <- function(t) {
    r <- cox.zph(fit, transform = t)$table
    list(chi2 = I(unname(r[, 1])), df = I(unname(r[, 2])), p = I(unname(r[, 3])))
  }
  tests <- list(km = z("km"), identity = z("identity"), rank = z("rank"))
  if (all(d[[s$time]] > 0)) tests$log <- z("log")
  b <- basehaz(fit, centered = TRUE)
  b0 <- basehaz(fit, centered = FALSE)
  k <- some(nrow(b))
  cc <- fit$concordance
  list(spec = s, n = fit$n, events = fit$nevent, names = I(names(coef(fit))), beta = I(unname(coef(fit))),
    se = I(unname(sqrt(diag(vcov(fit))))),
    se_naive = I(unname(sqrt(diag(if (is.null(fit$naive.var)) fit$var else fit$naive.var)))),
    z = I(unname(sm$coefficients[, "z"])), p = I(unname(sm$coefficients[, ncol(sm$coefficients)])),
    means = I(unname(fit$means)), loglik = fit$loglik, score = fit$score, wald = fit$wald.test,
    lrt = unname(sm$logtest), robust_score = fit$rscore,
    concordance = unname(cc[1:5]), c_index = unname(cc[6]), c_se = unname(cc[7]),
    rows = nrow(b), at = I(k), time = I(b$time[k]), centred = I(b$hazard[k]), at_zero = I(b0$hazard[k]),
    zph = tests)
}

km_case <- function(s) {
  d <- prepare(s)
  f <- as.formula(paste0("Surv(", bt(s$time), ",", bt(s$event), ") ~ ", if (is.null(s$group)) "1" else bt(s$group)))
  environment(f) <- environment()
  call <- list(f, data = d)
  if (!is.null(s$weights)) call$weights <- d$.w
  if (!is.null(s$cluster)) call$cluster <- d[[s$cluster]]
  one <- function(type) do.call(survfit, c(call, conf.type = type))
  pl <- one("plain"); lg <- one("log"); ll <- one("log-log")
  base <- if (is.null(pl$strata)) c(all = length(pl$time)) else pl$strata
  ends <- cumsum(base)
  curves <- lapply(seq_along(base), function(g) {
    rows <- (ends[g] - base[g] + 1):ends[g]
    k <- some(length(rows), 15)
    r <- rows[k]
    med <- function(x) {
      t <- summary(x)$table
      v <- if (is.matrix(t)) t[g, ] else t
      I(unname(v[c("median", "0.95LCL", "0.95UCL")]))
    }
    list(points = length(rows), at = I(k), time = I(pl$time[r]), at_risk = I(pl$n.risk[r]),
      events = I(pl$n.event[r]), survival = I(pl$surv[r]),
      std_error = I(if (isTRUE(pl$logse)) pl$std.err[r] * pl$surv[r] else pl$std.err[r]),
      hazard = I(pl$cumhaz[r]),
      plain = list(lower = I(pl$lower[r]), upper = I(pl$upper[r]), median = med(pl)),
      log = list(lower = I(lg$lower[r]), upper = I(lg$upper[r]), median = med(lg)),
      loglog = list(lower = I(ll$lower[r]), upper = I(ll$upper[r]), median = med(ll)))
  })
  list(spec = s, curves = unname(curves))
}

logrank_case <- function(s) {
  d <- prepare(s)
  rhs <- bt(s$group)
  if (!is.null(s$strata)) rhs <- c(rhs, paste0("strata(", bt(s$strata), ")"))
  f <- as.formula(paste0("Surv(", bt(s$time), ",", bt(s$event), ") ~ ", paste(rhs, collapse = "+")))
  environment(f) <- environment()
  r <- survdiff(f, data = d, rho = s$rho)
  tot <- function(x) if (is.matrix(x)) rowSums(x) else x
  df <- sum(tot(r$exp) > 0) - 1
  list(spec = s, n = I(unname(as.vector(if (is.matrix(r$n)) rowSums(r$n) else r$n))),
    observed = I(unname(tot(r$obs))), expected = I(unname(tot(r$exp))), variance = unname(r$var),
    chi2 = r$chisq, df = df, p = pchisq(r$chisq, df, lower.tail = FALSE))
}

concordance_case <- function(s) {
  d <- prepare(s)
  rhs <- bt(s$covariates)
  if (!is.null(s$strata)) rhs <- c(rhs, paste0("strata(", bt(s$strata), ")"))
  f <- as.formula(paste0("Surv(", bt(s$time), ",", bt(s$event), ") ~ ", paste(rhs, collapse = "+")))
  environment(f) <- environment()
  call <- list(f, data = d, reverse = TRUE)
  if (!is.null(s$weights)) call$weights <- d$.w
  if (!is.null(s$cluster)) call$cluster <- d[[s$cluster]]
  r <- do.call(concordance, call)
  count <- if (is.matrix(r$count)) colSums(r$count) else r$count
  list(spec = s, counts = unname(count), c_index = r$concordance, se = sqrt(r$var))
}

spec <- function(table, time, event, covariates = NULL, ...) {
  s <- list(table = table, time = time, event = event, ...)
  if (!is.null(covariates)) s$covariates <- I(covariates)
  s
}
syn_t <- "golden/survival_synthetic.csv"
cox <- list()
for (ties in c("efron", "breslow")) {
  for (w in list(NULL, "copies", "weight")) for (st in list(NULL, "site")) for (cl in list(NULL, "patient"))
    cox[[length(cox) + 1]] <- spec(syn_t, "time", "event", c("a", "b", "c"), ties = ties, weights = w, strata = st, cluster = cl)
  add <- function(...) cox[[length(cox) + 1]] <<- spec(..., ties = ties)
  add("lifelines/lung.csv", "time", "status", c("age", "sex", "ph.ecog"))
  add("lifelines/lung.csv", "time", "status", c("age", "ph.karno", "wt.loss", "meal.cal"), strata = "sex", cluster = "inst")
  add("lifelines/gbsg2.csv", "time", "cens", c("horTh", "age", "menostat", "tsize", "tgrade", "pnodes", "progrec", "estrec"))
  add("lifelines/gbsg2.csv", "time", "cens", c("age", "tsize", "pnodes"), strata = "tgrade", weights = "rule4")
  add("lifelines/rossi.csv", "week", "arrest", c("fin", "age", "race", "wexp", "mar", "paro", "prio"))
  add("lifelines/rossi.csv", "week", "arrest", c("age", "prio"), strata = "wexp", weights = "rule3")
  add("lifelines/larynx.csv", "time", "death", c("age", "Stage_II", "Stage_III", "Stage_IV"))
  add("lifelines/kidney_transplant.csv", "time", "death", c("age", "black_male", "white_male", "black_female"))
  add("lifelines/multicenter_aids_cohort.tsv", "T", "D", "AIDSY")
  add("TCGA-CDR_THCA.csv", "OS.time", "OS", c("age_at_initial_pathologic_diagnosis", "gender"))
  add("TCGA-CDR_THCA.csv", "OS.time", "OS", "age_at_initial_pathologic_diagnosis")
  add("TCGA-CDR_THCA.csv", "PFI.time", "PFI", c("age_at_initial_pathologic_diagnosis", "gender"), cluster = "initial_pathologic_dx_year")
  add("sksurv/actg320.arff", "time", "censor", c("tx", "age", "cd4", "karnof", "raceth"), strata = "strat2")
  add("sksurv/veteran.arff", "Survival_in_days", "Status", c("Treatment", "Celltype", "Karnofsky_score", "Age_in_years", "Prior_therapy"), event_value = "dead")
  add("sksurv/whas500.arff", "lenfol", "fstat", c("age", "gender", "hr", "bmi", "chf", "miord"), cluster = "los")
  add("sksurv/flchain.arff", "futime", "death", c("age", "sex", "kappa", "lambda"), event_value = "dead")
  add("sksurv/flchain.arff", "futime", "death", c("age", "creatinine"), event_value = "dead", strata = "sex", cluster = "sample.yr", weights = "rule3")
  add("sksurv/cgvhd.arff", "survtime", "stat", c("dx", "tx", "extent", "age"))
  add("sksurv/breast_cancer_GSE7390-metastasis.arff", "t.tdm", "e.tdm", c("age", "size", "er", "X219340_s_at"), event_value = "1")
}
km <- list(spec(syn_t, "time", "event"), spec(syn_t, "time", "event", group = "site"),
  spec(syn_t, "time", "event", weights = "copies", group = "site"), spec(syn_t, "time", "event", weights = "weight"),
  spec(syn_t, "time", "event", cluster = "patient"), spec(syn_t, "time", "event", cluster = "patient", weights = "weight", group = "b"),
  spec("lifelines/lung.csv", "time", "status", group = "sex"), spec("lifelines/gbsg2.csv", "time", "cens", group = "tgrade"),
  spec("lifelines/rossi.csv", "week", "arrest", group = "fin"), spec("lifelines/multicenter_aids_cohort.tsv", "T", "D"),
  spec("TCGA-CDR_THCA.csv", "OS.time", "OS", group = "gender"), spec("lifelines/larynx.csv", "time", "death"),
  spec("sksurv/flchain.arff", "futime", "death", event_value = "dead", group = "sex"),
  spec("sksurv/flchain.arff", "futime", "death", event_value = "dead", weights = "rule4", cluster = "sample.yr"))
logrank <- list()
for (rho in c(0, 1)) {
  add <- function(...) logrank[[length(logrank) + 1]] <<- spec(..., rho = rho)
  add(syn_t, "time", "event", group = "b"); add(syn_t, "time", "event", group = "site")
  add(syn_t, "time", "event", group = "b", strata = "site")
  add("lifelines/lung.csv", "time", "status", group = "sex"); add("lifelines/lung.csv", "time", "status", group = "ph.ecog", strata = "inst")
  add("lifelines/gbsg2.csv", "time", "cens", group = "tgrade", strata = "horTh"); add("lifelines/rossi.csv", "week", "arrest", group = "fin")
  add("TCGA-CDR_THCA.csv", "OS.time", "OS", group = "gender")
  add("sksurv/veteran.arff", "Survival_in_days", "Status", event_value = "dead", group = "Celltype")
  add("sksurv/flchain.arff", "futime", "death", event_value = "dead", group = "flc.grp", strata = "sex")
}
conc <- list(spec(syn_t, "time", "event", "a"), spec(syn_t, "time", "event", "b"),
  spec(syn_t, "time", "event", "a", strata = "site"), spec(syn_t, "time", "event", "b", weights = "weight", strata = "site"),
  spec(syn_t, "time", "event", "b", cluster = "patient", weights = "copies"),
  spec("lifelines/lung.csv", "time", "status", "age"), spec("lifelines/lung.csv", "time", "status", "ph.ecog"),
  spec("lifelines/gbsg2.csv", "time", "cens", "pnodes"), spec("lifelines/rossi.csv", "week", "arrest", "prio"),
  spec("TCGA-CDR_THCA.csv", "OS.time", "OS", "age_at_initial_pathologic_diagnosis"),
  spec("sksurv/flchain.arff", "futime", "death", "age", event_value = "dead"),
  spec("sksurv/flchain.arff", "futime", "death", "flc.grp", event_value = "dead", strata = "sample.yr"))

out <- list(made_with = paste("R", getRversion(), "survival", packageVersion("survival")),
  cox = lapply(cox, cox_case), km = lapply(km, km_case), logrank = lapply(logrank, logrank_case),
  concordance = lapply(conc, concordance_case))
writeLines(json(out), file.path(here, "survival.json"))
