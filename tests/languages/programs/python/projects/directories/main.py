from shop.prices import total

print("total", total([3, 4]))
