# R writes the columns of base.csv with its own functions, readr, haven and foreign.
library(haven)
base <- read.csv("base.csv", colClasses = "character", na.strings = character(), encoding = "UTF-8", check.names = FALSE)
kinds <- read.csv("kinds.csv", colClasses = "character", na.strings = character())
labels <- list(answer = c(yes = 1, no = 2, yes = 3), rating = c(good = 1, bad = 2, refused = 8, unknown = 9))
none <- function(x) ifelse(x == "", NA, x)
frame <- data.frame(id = base$id)
for (i in seq_len(nrow(kinds))) {
  name <- kinds$name[i]
  x <- none(base[[name]])
  frame[[name]] <- switch(kinds$kind[i],
    whole = , decimal = , float = , labelled = as.numeric(x),
    date = as.Date(x),
    moment = , zoned = as.POSIXct(sub("Z$", "", x), tz = "UTC"),
    clock = hms::as_hms(x),
    span = as.difftime(as.numeric(x), units = "hours"),
    truth = x == "true",
    ordered = factor(x, c("low", "mid", "high"), ordered = TRUE),
    factor = factor(x, c("red", "green", "blue")),
    extended = suppressWarnings(as.numeric(x)),
    x)
}
write.csv(frame, "base.R.csv", row.names = FALSE)
write.csv2(frame, "base.R.csv2", row.names = FALSE)
readr::write_csv(frame, "readr.csv")
readr::write_tsv(frame, "readr.tsv")
saveRDS(frame, "table.rds")
save(frame, file = "table.RData")
dput(frame, "table.R")
statistics <- frame
statistics$stay <- hms::as_hms(statistics$stay)
statistics$answer <- labelled(frame$answer, c(yes = 1, no = 2, yes = 3), label = "What they said")
spss <- statistics
spss$rating <- labelled_spss(frame$rating, c(good = 1, bad = 2, refused = 8, unknown = 9), na_values = c(8, 9))
write_sav(spss, "haven.sav")
write_sav(spss, "haven.zsav", compress = "zsav")
stata <- statistics
tagged <- frame$pay
tagged[base$pay == ".a"] <- tagged_na("a")
tagged[base$pay == ".b"] <- tagged_na("b")
stata$pay <- labelled(tagged, c(refused = tagged_na("a"), unknown = tagged_na("b")))
stata$answer <- labelled(as.integer(frame$answer), c(yes = 1L, no = 2L, yes = 3L))
stata$rating <- labelled(as.integer(frame$rating), c(good = 1L, bad = 2L, refused = 8L, unknown = 9L))
write_dta(stata, "haven.dta", version = 14)
write_dta(stata, "haven15.dta", version = 15)
xpt <- statistics
xpt$rating <- frame$rating
xpt$letter <- substr(xpt$letter, 1, 200)
write_xpt(xpt, "haven8.xpt", version = 8)
write_xpt(xpt, "haven5.xpt", version = 5)
plain <- frame
plain$stay <- as.numeric(frame$stay, units = "secs")
plain$clock <- as.numeric(frame$clock)
foreign::write.dta(plain, "foreign.dta")
