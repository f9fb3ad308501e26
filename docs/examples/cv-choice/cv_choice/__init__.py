"""Which of two applicants a model invites whose CVs differ in a name alone."""
