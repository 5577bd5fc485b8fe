// InlineVector: a vector whose first N elements need no allocation. For values that are made by the hundred thousand
// and nearly always short: the terms of an index.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace fusejit {

// As std::vector, as far as it goes; moving from one leaves it empty. T moves without throwing.
template <class T, std::size_t N>
class InlineVector {
  static_assert(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_move_assignable_v<T>);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  InlineVector() = default;
  InlineVector(std::initializer_list<T> list) { assign(list.begin(), list.end()); }
  InlineVector(const InlineVector& other) { assign(other.begin(), other.end()); }
  InlineVector(InlineVector&& other) noexcept { take(other); }
  InlineVector& operator=(const InlineVector& other) {
    if (this != &other) clear(), assign(other.begin(), other.end());
    return *this;
  }
  InlineVector& operator=(InlineVector&& other) noexcept {
    if (this != &other) release(), take(other);
    return *this;
  }
  ~InlineVector() { release(); }

  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }

  void clear() {
    std::destroy(begin(), end());
    size_ = 0;
  }
  void reserve(std::size_t count) {
    if (count > capacity_) grow(count);
  }
  void push_back(T element) {
    if (size_ == capacity_) grow(2 * std::size_t{capacity_});
    new (static_cast<void*>(end())) T(std::move(element));
    ++size_;
  }
  T* insert(const T* before, T element) {
    const std::ptrdiff_t at = before - data_;
    push_back(std::move(element));
    std::rotate(data_ + at, end() - 1, end());
    return data_ + at;
  }
  T* erase(const T* one) { return erase(one, one + 1); }
  T* erase(const T* first, const T* last) {
    T* to = data_ + (first - data_);
    if (first == last) return to;
    T* rest = std::move(data_ + (last - data_), end(), to);
    std::destroy(rest, end());
    size_ = static_cast<std::uint32_t>(rest - data_);
    return to;
  }

  friend bool operator==(const InlineVector& a, const InlineVector& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  T* own() { return std::launder(reinterpret_cast<T*>(room_)); }
  bool is_own() const { return static_cast<const void*>(data_) == room_; }
  // Of what is empty.
  void assign(const T* first, const T* last) {
    reserve(static_cast<std::size_t>(last - first));
    std::uninitialized_copy(first, last, data_);
    size_ = static_cast<std::uint32_t>(last - first);
  }
  // Of what holds nothing.
  void take(InlineVector& other) noexcept {
    if (other.is_own()) {
      std::uninitialized_move(other.begin(), other.end(), data_);
      size_ = other.size_;
      other.clear();
    } else {
      data_ = std::exchange(other.data_, other.own());
      size_ = std::exchange(other.size_, 0), capacity_ = std::exchange(other.capacity_, N);
    }
  }
  void release() {
    clear();
    if (!is_own()) std::allocator<T>().deallocate(data_, capacity_);
    data_ = own(), capacity_ = N;
  }
  void grow(std::size_t count) {
    T* more = std::allocator<T>().allocate(count);
    std::uninitialized_move(begin(), end(), more);
    std::destroy(begin(), end());
    if (!is_own()) std::allocator<T>().deallocate(data_, capacity_);
    data_ = more, capacity_ = static_cast<std::uint32_t>(count);
  }

  alignas(T) std::byte room_[N * sizeof(T)];
  T* data_ = own();
  std::uint32_t size_ = 0, capacity_ = N;
};

// As std::erase_if for a vector.
template <class T, std::size_t N, class Pred>
std::size_t erase_if(InlineVector<T, N>& from, Pred pred) {
  T* rest = std::remove_if(from.begin(), from.end(), pred);
  const auto count = static_cast<std::size_t>(from.end() - rest);
  from.erase(rest, from.end());
  return count;
}

}  // namespace fusejit
