print("before")
raise RuntimeError("out of stock")
