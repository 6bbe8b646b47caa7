"""The predictors; each is one file that registers itself."""
