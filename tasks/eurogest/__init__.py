"""EuroGEST: gender stereotypes in thirty languages."""
