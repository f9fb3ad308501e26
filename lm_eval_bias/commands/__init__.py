"""The commands about runs that were made: one module each, with ``main(argv)``, imported when it is called."""
