#include <fusejit/target.h>

#include <iostream>

int main() { std::cout << fusejit::Target::host().str() << '\n'; }
