numbers = [int(line) for line in open("in/numbers.txt")]
open("sum.txt", "w").write(f"{sum(numbers)}\n")
