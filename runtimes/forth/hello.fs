.( Hello, World!) cr
