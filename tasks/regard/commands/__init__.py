"""The commands of regard: classifiers are trained, texts labelled, figures drawn."""
