// Which groups need which, as they grow.
#include "scheduler/fuse/links.h"

#include <gtest/gtest.h>

namespace fusejit::scheduler {
namespace {

// A group takes a node behind those that read what it had, as a value computed again beside its forward twin, and with
// it needs what came between: so does whoever needed the group before.
TEST(GroupLinks, AGroupGrowsBehindItsReaders) {
  GroupLinks links;
  links.open(10);
  links.open(20);
  links.add_producer(1, 0);
  links.open(30);
  links.add_producer(2, 1);
  links.open(40);
  DependencyWalk walk(links);
  const auto needs = [&](int group, int other) { return walk.any_needs(std::span(&group, 1), other); };
  EXPECT_TRUE(needs(2, 0));
  EXPECT_FALSE(needs(2, 3));
  links.add_node(0, 50);
  links.add_producer(0, 3);
  for (const int group : {0, 1, 2}) EXPECT_TRUE(needs(group, 3)) << group;
  EXPECT_FALSE(needs(3, 0));
  EXPECT_EQ(links.last_node, (std::vector<int>{50, 20, 30, 40}));
  EXPECT_EQ(links.last_needed, (std::vector<int>{50, 50, 50, 40}));
  // What a group needs may grow as well.
  links.open(60);
  links.add_node(3, 70);
  links.add_producer(3, 4);
  EXPECT_TRUE(needs(2, 4));
  EXPECT_FALSE(needs(4, 2));
}

// 3 needs 1 and 2, 1 and 2 need 0: the third takes what the first does.
TEST(GroupLinks, AGroupDoesWhatAnotherDid) {
  GroupLinks links;
  for (const int node : {10, 20, 30, 40, 50}) links.open(node);
  links.add_producer(1, 0);
  links.add_producer(2, 0);
  for (const int producer : {1, 2}) links.add_producer(3, producer);
  links.add_producer(4, 1);
  links.merge(3, 1);
  DependencyWalk walk(links);
  const auto needs = [&](int group, int other) { return walk.any_needs(std::span(&group, 1), other); };
  EXPECT_EQ(links.producers, (std::vector<std::vector<int>>{{}, {}, {0}, {2, 0}, {3}}));
  EXPECT_EQ(links.users, (std::vector<std::vector<int>>{{2, 3}, {}, {3}, {4}, {}}));
  EXPECT_EQ(links.first_node, (std::vector<int>{10, 20, 30, 20, 50}));
  EXPECT_TRUE(needs(4, 0) && needs(4, 2) && needs(4, 3));
  EXPECT_FALSE(needs(4, 1) || needs(3, 4));
  EXPECT_EQ(links.last_needed[4], 50);
}

}  // namespace
}  // namespace fusejit::scheduler
