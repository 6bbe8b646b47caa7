"""How a plan is judged: by constraint checkers that share no code with the strategies, and by the ground truth."""
