#pragma once
#include <memory>
#include <string>

class Shape {
public:
    Shape();
    virtual ~Shape();
    Shape(const Shape&) = delete;
    Shape& operator=(const Shape&) = delete;
    virtual std::string name() const = 0;
    virtual double area() const = 0;
    static int alive();
};

std::unique_ptr<Shape> circle(double radius);
std::unique_ptr<Shape> square(double side);
