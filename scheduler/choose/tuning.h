// Every constant that a chooser, of schedules or of what is stored, was tuned with, and where it was measured.
// Processors: Zen 4 (one 512-bit FMA a cycle), Sapphire Rapids and Zen 5 (two); 2 cores each, batch 16, f32, the layers
// of ResNet-50 and MobileNet-v2.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fusejit::scheduler::tuning {

// --- x86, register tiles

// Pixels of a tile that is two vectors wide. With two FMAs a cycle the weights stream from L2 at 128 / pixels bytes a
// cycle, so more is better up to what LLVM keeps without spilling (14 x 2: Sapphire Rapids); with one, 8 x 2 is within
// a point of the best tile on every layer (Zen 4). With two and an L2 that is fast enough, 8 x 2 takes 0.92 to 1.01 of
// the time of 14 x 2 in f32; in pairs of bf16, at twice the rate, 1.0 to 1.04 (Zen 5, told by its dot product).
inline constexpr std::int64_t kMostPixels = 14;
inline constexpr std::int64_t kFewPixels = 8;
// Depthwise, three taps of stride 1 on rows that are no longer than this: inputs that taps share take registers too,
// and an epilogue's. 0.67 to 0.9 of the time at 14x14 and 28x28; longer rows wait for memory (Zen 5).
inline constexpr std::int64_t kNarrowRow = 28, kNarrowRowPixels = 4;
// Fewer channels: every product has an address of its own, and what LLVM keeps of them takes registers (stem, Zen 4).
inline constexpr std::int64_t kFewChannels = 8;
// Vectors and pixels of a tile without products: those of the input gradient of 1x1, stride 2, that no window touches
// take 0.87 of the time of 2 and 8 (ResNet-50, Zen 5).
inline constexpr int kVectorsWithoutTerms = 4, kPixelsWithoutTerms = 4;
// Channels without a loop: 8 lose up to one point on 3x3, 2 are as good below 28 accumulators (Sapphire Rapids).
// Pairs of them have twice as many; four times is the same within two points, better or worse (Zen 5).
inline constexpr std::int64_t kUnrolledChannels = 4;
// Terms of a window's row that are unrolled where neighbouring results share inputs: along groups; in a tile of 16
// registers, which has so many pixels then. There one channel takes 0.8 of the time, three take 1.2 (Zen 3).
inline constexpr std::int64_t kMostUnrolledTerms = 32, kMostSharedTerms = 3, kSharingPixels = 5;
// An access narrower than this does not pay: lanes run along groups instead (depthwise).
inline constexpr std::int64_t kLeastLanes = 4;
// Fewer groups than this are not looped over by lanes.
inline constexpr std::int64_t kFewGroups = 4;
// Products for one result, below which memory is what a tile waits for (depthwise, 1x1 on 56x56).
inline constexpr std::int64_t kFewProducts = 256;
// A sum over channels that is so many times as long as another long chain is cut (numerics, not speed: long_sum.h).
inline constexpr std::int64_t kLongProduct = 64;

// Element-wise results from half of L3 on, or from these 16 MiB on, are stored around the caches: joins of 51 and 26 MB
// take 0.61 and 0.65 of the time where L3 has 480 MiB, which others use too, and who reads them next no longer
// (Sapphire Rapids). Results of convolutions, whose readers follow at once when a network serves, gain nothing there.
inline constexpr std::int64_t kMostCachedBytes = 16 << 20;

// Packed weights from this part of L2 on, for at most so many tiles of pixels, are fetched a block of outputs ahead:
// one image of ResNet-50 reads 100 MB of weights (Zen 5).
inline constexpr std::int64_t kStreamedWeightsOfL2 = 4, kMostTilesOfStream = 64;
// Of more tiles, where L2 does not hold all weights, tasks have several images and some of the outputs: 0.55 of the
// time of tasks of rows for 3x3 of 512 at 7x7, 0.68 for 512->2048, 0.95 for 3x3 of 256 at 14x14 (Sapphire Rapids). What
// such tasks compute to a panel, each its own, counts so many times as much as what they read.
inline constexpr double kCostOfSharedPanel = 8;

// --- x86, matrix unit

// Terms of a row, below which it is mostly idle; pixels of a tile of one nest.
inline constexpr std::int64_t kLeastTermsOfMatrix = 8, kMostRowsOfMatrix = 64;
// The same for rows of pixels that are one tile: 2 of 56 or 4 of 28 take 0.93 to 0.98 of the time, 7 of 7 0.6 to 0.87
// (1x1, Sapphire Rapids).
inline constexpr std::int64_t kMostRowsTogether = 112;
// Of so many terms two rows of up to 16 pixels are a tile, since weights come from L2 for each: 3x3 of 256 at 14x14 and
// of 512 at 7x7 take 0.77 to 0.8 of the time, 1024 -> 256 and 512 0.95 to 0.97; 256 -> 1024 1.08 (Sapphire Rapids).
inline constexpr std::int64_t kLeastTermsOfTwoRows = 1024;
// Channels of which neighbouring taps are one row, so that vectors of a panel hold whole pixels.
inline constexpr std::int64_t kMostChannelsOfTaps = 8;
// Vectors of outputs whose epilogue reads as many elements of other tensors: joins of ResNet-50, of 256 to 512 outputs,
// take 0.45 to 0.6 of the time that two vectors take, 1024 of 14x14 0.93; without such reads 1.04 to 1.3 (Sapphire
// Rapids).
inline constexpr int kVectorsOfStreams = 8;
// Bytes of weights that L2 keeps, and of a panel, which are read, computed and written, beside those that come from
// behind L2.
inline constexpr double kCostFromL2 = 0.25, kCostOfPanel = 1.5;
// Outputs and channels of a task, beyond which shares of them repay that panels are copied for each.
inline constexpr std::int64_t kOutputsOfMatrix = 256, kChannelsOfMatrix = 64;
// Tasks for which weights are shared out where parts of images are not enough: 8 take 0.83 of the time of 16 (3x3 of
// 256, Sapphire Rapids).
inline constexpr std::int64_t kSharesOfMatrix = 8;
// Parallel tasks of a sum that is cut into parts: each part costs as many bytes as there are weights, twice.
inline constexpr int kTasksOfSums = 16;

// --- x86, weight gradients

// The part of L1 that a block of the second operand takes, which every tile of weights passes over, as rows that divide
// an image or as whole images: a row at 56x56, half an image at 14x14, two at 7x7. With twice as much 1x1 layers take
// up to 1.05 of the time on ResNet-50 and 1.06 to 1.15 on MobileNet-v2, with half of it 1.04 at 14x14 (Zen 5, 48 KiB).
inline constexpr double kPanelOfL1 = 0.27;
// A row of more pixels than so many times that is cut: 64 channels at 224x224 take 0.88 of the time, a signal of 65,536
// samples 0.9 of that in pieces of 512; 112 columns are 1.02 (Sapphire Rapids).
inline constexpr std::int64_t kRoomsOfRow = 2;
// Of an image whose rows are parts of the sum: all weights are written and read once for so many products with each.
inline constexpr std::int64_t kLeastPixelsOfPart = 256;
// What lies so far apart shares a set of L1: 64 sets of lines of 64 bytes. Weight gradients of 1x1 layers whose pixels
// do take 0.74 to 0.91 of the time when nothing is fetched into it, the others 1.0 to 1.5. With the other operand first
// 1024 -> 256 at 14x14 takes 0.90 to 0.92, 1024 -> 512 0.90 to 0.97, 2048 -> 512 at 7x7 0.98 to 1.0, but with a
// gradient that is computed 1.02 to 1.06 (Zen 5).
inline constexpr std::int64_t kBytesOfSets = 4096;
// Products with an element of a panel of pairs, in units of lanes: copying it is a twentieth beside that. With half of
// them 1x1 layers take 1.03 of the time, with a quarter 1.06 more (Zen 5).
inline constexpr std::int64_t kLeastUsesOfPanel = 512;
// Weights of an output, of which fewer than these do not repay that both operands are copied as pairs: 9 (3x3 of one
// channel) take 1.15 of the time, 27 take 0.73 to 0.91, 147 (the stem) 0.52 (Zen 5).
inline constexpr std::int64_t kLeastWeightsOfPairs = 16;
// Weights of an output from which four vectors of outputs by six channels are better than two by fourteen: 0.90 to 0.97
// of the time with 256 and more, 1.03 with 128, 1.06 to 1.11 with 64; several taps 0.94 with 64 outputs, whose sums of
// parts stay in L2, 1.05 with 128, 0.96 from 256 on, 1.05 with strides (ResNet-50, Zen 5).
inline constexpr std::int64_t kLeastOutputsOfWideTaps = 256;
inline constexpr std::int64_t kLeastWeightsOfWideTile = 256;
// The part of L2 that the sums of the blocks of outputs may take that share a panel of a prologue. With a sixteenth 1x1
// layers take 1.04 to 1.07 of the time (Zen 5; Zen 4 1 to 1.05).
inline constexpr std::int64_t kSumsOfPanelInL2 = 4;
// Where weights leave L2 and operands are copied, tasks share out outputs and channels: this part of L2 holds a task's
// sums, and fewer channels are too few tiles. With 128 x 128 or 256 x 256 of a task 1x1 layers take 0.86 to 0.95 of the
// time in pairs, 0.88 to 1.01 with a prologue; 3x3 of stride 2, whose operands are four times as large, 0.8 with as few
// channels and more outputs. One block of outputs is too little for several taps: 1.25 (Zen 5).
// With a quarter for the sums 1x1 layers take 1.01 of the time, in pairs 1.02 (Zen 5).
inline constexpr std::int64_t kSumsOfTaskInL2 = 2, kLeastChannelsOfTask = 32;
// A first operand that is not copied is shared out only where partial sums of images would be more than twice of L2:
// with 1 and 2 MiB of weights 1.05 to 1.07 of the time, with 4 and 8 less (1x1, Zen 5, 1 MiB).
inline constexpr std::int64_t kSharedWeightsOfL2 = 2;
// Where L1 waits for L2, single taps of as many channels and outputs are copied to tiles, and half of L2 holds the sums
// of a task: with fewer a copy is not repaid, with 64 that are computed 1.0 to 1.12, with 128 that are not 0.98
// to 1.06. What it takes to copy an element to tiles, to copy or compute one of a row, and to write, read and add one
// of a partial sum; how much more that may be in all so that tasks are twice as many. Those are an eighth of the
// target's at least, so that larger shares of the weights need one copy. With all of it, of a step's time: 1024 -> 256
// at 14x14 0.84, 512 -> 256 at 28x28 0.90, strides 0.72 to 0.91, 256 -> 1024 0.96; of MobileNet-v2 0.73 to 1.02;
// several taps 0.90 to 1.01 (Sapphire Rapids, 2 MiB, told by its two FMA and no faster dot product).
inline constexpr std::int64_t kLeastChannelsInL2 = 64, kLeastOutputsInL2 = 256, kLeastComputedInL2 = 96;
inline constexpr double kCostOfTiles = 2, kCostOfRows = 1, kCostOfComputedRows = 2, kCostOfParts = 4,
                        kWorthOfTasks = 1.15;
// Weight gradients have as few tasks as an eighth of the target's everywhere: each copies its operands and may leave a
// part of all weights. Eight in place of 16 take 0.95 to 0.99 of the time, four 0.92 to 1.0 of that on two cores
// (medians over the gradients of ResNet-50 and 18, DenseNet-121, VGG-16 and MobileNet-v2, f32 and bf16, Zen 5).
inline constexpr int kTasksOfLargeTask = 8;
// A panel of tiles: products with each of its elements at least; pixels that pass by (1x1: 196 and 224 in place of
// 112 take 1.02 and 1.04 of the time at 28x28 and 56x56), with several taps at most so many; the parts of L2 that it
// and the sums beside it take (Zen 5).
inline constexpr std::int64_t kLeastUsesOfTile = 128, kPixelsOfTile = 100, kMostPixelsOfTile = 448;
inline constexpr double kPanelOfTilesInL2 = 0.25, kSumsOfTilesInL2 = 0.15;

// --- x86, panels of what is computed as it is read

// Tasks that are enough where each computes the rows that its windows share with the next one's again.
inline constexpr int kTasksOfPanels = 16;
// What a computed element of a panel takes, in units of a copied one: the gradient of a normalisation is twelve
// instructions and two reads in place of two and one (counted, not timed).
inline constexpr std::int64_t kCostOfComputing = 4;

// Pixels of a task at least, also where its part of L2 has no room for what the epilogue touches of so many. More than
// fit only for those: input gradients of 1x1 that read three tensors take 0.78 to 0.86 of the time of half as much
// again (64 channels at 56x56, 128 at 28x28), with a row of 14 1.01 to 1.03 (ResNet-50's step, Zen 5).
inline constexpr std::int64_t kLeastPixelsOfTask = 28;
// What tasks of single taps touch, as a part of a large L2, in place of half of it: forward with statistics 0.66 to
// 0.86 at 56x56, 0.77 to 0.97 at 28x28, 0.9 to 1.0 at 14x14, input gradients 0.74 to 0.92, 0.86 to 0.98, 0.92 to 0.99
// (Sapphire Rapids, ResNet-50's step). Where nothing is computed for the panel, it is a copy: operand and result are so
// many times L2 then (5.6 to 8.4 MiB at 14x14: 1.05 to 1.15).
inline constexpr std::int64_t kSmallTasksOfL2 = 8, kOperandsOfL2 = 5;
// The same on other processors, where the panel's elements are stored too: a join and the 1x1 behind it take 0.65 to
// 0.69 of the time of both at 56x56, 0.77 at 28x28, 0.9 at 14x14; nothing fetched, in tasks of half of L2, 1.0 to 1.6
// (its target, on a Sapphire Rapids).
inline constexpr std::int64_t kStoringTasksOfL2 = 4;

// Terms of a tile that is finished late. In bf16 beside dot products 1x1 convolutions of 64 terms that add a residual
// take 0.84 of the time, of 128 0.91, of 256 0.98, gradients by the input of 64 and 128 0.9, of 1024 1.01; ResNet-50 at
// batch 16 takes 0.98, a training step 0.995. In f32, where products take twice as long, 1.0 (Zen 5).
inline constexpr std::int64_t kTermsOfLateTile = 512;

// --- x86, Winograd

// Patches of a task: those of one tile of results, for which the weights are read once. One row of 7 takes 0.95 of the
// time of 49 with 128 channels at 28x28, 0.87 of 28; of 14 with 64 at 56x56 0.93 of 28. With 256 channels, whose
// weights leave L2 far behind, 8 take 0.96 of 16, but want them at twice the rate from L3 (Zen 5).
inline constexpr std::int64_t kLeastPatches = 7;
// Of a weight gradient, whose sums come and go once for them, and where no cache holds the weights.
inline constexpr std::int64_t kManyPatches = 28, kMostPatches = 64;
// More rows than that, in place of a last block that is as empty: 0.91 with 128 channels at 28x28, 0.81 with 512 (49
// patches in place of 56, Zen 5).
inline constexpr double kWasteOfPatches = 0.9;
// Tasks at least; blocks of outputs that a task has at least where they are shared out, and those of a weight gradient
// that has no tasks enough with more outputs, or where L1 waits for L2.
inline constexpr std::int64_t kWinogradTasks = 16, kLeastBlocks = 4, kBlocksOfWeights = 2;
// Elsewhere (Zen 5); for each share of them the inputs are taken to the points again. With large tasks, eight
// then, and the sums below, in place of 64 outputs, 16 tasks and sums of 0.6 of L2: 0.86
// with 64 channels at 56x56, 0.96 with 128 at 28x28, 0.94 with 256 at 14x14 and with 512 at 7x7, in a step of
// ResNet-50.
inline constexpr std::int64_t kOutputsOfWeights = 128;
// The sums of a weight gradient at all points, as a multiple of L2: with 0.6 and 1.2 it takes 0.6 and 0.78 of the
// direct one's time, with 2.4 the same, with 4.7 more (Zen 5).
inline constexpr std::int64_t kSumsOfL2 = 3;
// Channels and vectors of a tile of it, where its sums and the patches at hand are so many times L2: 0.97 with 64
// channels at 56x56 and with 256 at 14x14 (1.1 and 1.2), 0.98 with 512 at 7x7 (1.2), but 1.03 with 128 at 28x28 (1.5).
inline constexpr std::int64_t kWideTile = 4;
inline constexpr double kSumsAndPatchesOfL2 = 1.2;
// So that tasks share out channels too, until their sums are this multiple of L2. Where several points meet one of the
// weights, sums come and go less often: a stride of two takes 0.89 of its time with 128 channels at 56x56. Where L1
// waits for L2, fewer, and with them so many patches that both stay; and half as many tasks: 0.78 with 128 channels at
// 28x28, 0.8 with 256 at 14x14, 0.9 with 512 at 7x7 and 64 at 56x56 (Sapphire Rapids).
inline constexpr double kSumsInL2 = 1.2, kSumsOfSeveralPoints = 2.4, kSumsInLargeL2 = 0.3, kPatchesOfL2 = 0.75;
// Where weights that L2 does not hold pass a task's patches: blocks of outputs that meet the patches together at most;
// which part of what a task leaves of L2 keeps weights, and from which part of it on inputs at all points leave it, all
// of them at twice as much; bytes a cycle that come from behind L2 as they are fetched ahead, and as they are read;
// what half as many tasks must save; and cycles for a vector of a patch's inputs and of its results. In place of 7 and
// 8 patches, nothing fetched: 0.75 with 128 channels at 28x28, 0.73 with 256 at 14x14, 0.44 with 512 at 7x7 in a step
// of ResNet-50 (Sapphire Rapids). Of 256 channels four blocks together take 0.9 of one, of 128 1.0.
inline constexpr std::int64_t kWeightBlocksTogether = 4;
inline constexpr double kPartOfRoom = 0.8, kInputsOfL2 = 0.4, kFetchedBytesPerCycle = 12, kReadBytesPerCycle = 8,
                        kWorthOfWeightTasks = 1.06, kPassInputCycles = 250, kPassResultCycles = 200;
// Products of bf16 in a matrix unit for one of f32 in a vector, two of which a core starts a cycle: 512 for 32 (AMX).
inline constexpr double kMatrixProducts = 16;
// What Winograd is expected to take, in cycles of a core: for a vector of a patch's inputs and of its results, fetched
// ahead; of what a weight gradient reads, and of its taps in each part; bytes a cycle that weights come with from
// memory and, fetched by the processor as they lie, from a cache; that a weight gradient's sums come and go with, and
// if L2 holds them; what tiles reach of the peak; and what Winograd must save. Fitted to 23 layers of ResNet-50 and 18,
// of VGG-16 and of 3, 8 and 16 channels, one to 128 images, in f32 and in bf16 beside dot products (Zen 5): they take
// 0.7 to 1.4 of what it says but where results are 2 x 2, and are on its side of 0.9. So are 19 weight gradients in
// bf16.
inline constexpr double kWinogradInputCycles = 150, kWinogradResultCycles = 140, kWinogradGradientCycles = 200,
                        kWinogradTapsCycles = 600, kWeightBytesFromMemory = 7, kWeightBytesFromCache = 64,
                        kSumBytes = 16, kSumBytesFromL2 = 64, kPartOfPeak = 0.93, kWinogradGain = 0.9;

// --- x86, groups without an anchor

// Elements below which a fork and join costs more than it saves.
inline constexpr std::int64_t kSerialElements = 8192;
// Vectors of a task where there is one axis, rows of one whose windows overlap: it finds those above it again.
inline constexpr std::int64_t kLeastVectorsOfTask = 32;
inline constexpr std::int64_t kLeastRowsOfTask = 8;
// Vectors that are written as copies where they are all of an axis.
inline constexpr std::int64_t kMostVectorsWithoutLoop = 4;
// Sums: terms of one in a task, of a column for each word that a part of it leaves; vectors of columns side by side;
// vectors of a row in a trip, whose cache lines are on their way at once, with as many independent accumulators as half
// of the registers hold.
inline constexpr std::int64_t kLeastTermsOfTask = 8;
inline constexpr std::int64_t kLeastRowsOfWord = 16;
inline constexpr int kColumnsTogether = 4;
inline constexpr int kVectorsOfTrip = 4;
// Columns side by side where rows are shared out and wide, 512 bytes of each. Batch norm, addition and ReLU with their
// gradients take 0.80 of the time of 64 columns and of fewer, larger parts (1024 channels at 14x14, batch 16, Sapphire
// Rapids; 2048 at 7x7 0.85). Sixteen vectors of AVX2, whose sums are more than its registers, take 0.87 of eight.
inline constexpr int kColumnsOfParts = 128;
// How far ahead large values are fetched. Processors do so by themselves, but not from one page of 4 KiB into the next.
// Of wide rows a block of columns is all that is read before the next row: a few of those.
inline constexpr std::int64_t kElementsAhead = 2048;
inline constexpr std::int64_t kRowsAhead = 4;
// Windows of a max pool are fetched a row ahead where what they give, a quarter of what they look at or less, is this
// part of L2 at least. Zen 5: a pool of 51 MB 2.0 -> 1.5 ms, its gradient 4.6 -> 2.7; more where memory is faster.
inline constexpr std::int64_t kFetchedWindowsOfL2 = 4;

// The part of L2 that a round of a kernel may move which reads again what it has just written or read.
inline constexpr std::int64_t kRoundOfL2 = 2;
// Values of the size of the largest one that is stored, which such a round is taken to move: a gradient of a norm reads
// two and stores one.
inline constexpr std::int64_t kValuesOfRound = 4;

// Both gradients of a convolution in one kernel: tasks, of which eight of 16 images take 0.99 of the time of sixteen
// (Zen 5).
inline constexpr std::int64_t kTasksOfBothGradients = 8;
// The part of L2 that two copies of the weights may be, how many times L2 is saved at least, since little of so much
// would still be in a cache, the part of all bytes that is saved at least, and the part of L2 that a block of rows
// touches. 256 to 64 channels at 56x56 0.83 to 0.87 of the time of both, in blocks of two rows 0.89, of four 0.9; 96 to
// 16 at 112x112 0.68; with weights of a quarter of a MiB, 512 to 128 at 28x28, 1.03, and where a tenth is saved, 64 to
// 256, 1.03 (steps of ResNet-50 and MobileNet-v2, Sapphire Rapids, 2 MiB of L2).
inline constexpr std::int64_t kWeightsOfBothGradients = 8, kSavedOfL2 = 5, kSavedByBothGradients = 4,
                              kRowsOfBothGradients = 16;
// Along groups (depthwise) a task has rows of a block of groups; of one tensor so much of L2: 144 at 56x56 7 rows 0.62
// of the time of both apart, 14 0.67, 28 0.80; 32 at 112x112 8 rows 0.77, 192 at 28x28 7 rows 0.64, 14 0.67 (their
// operands in memory, the same processor).
inline constexpr std::int64_t kRowsOfGroupsInL2 = 16;
// Vectors of groups that a weight gradient has side by side.
inline constexpr int kMostVectorsOfGroups = 4;

// --- CUDA (registers, spills and accesses as ptxas reports them for sm_80 to sm_120; times on an H100: docs/gpu.md)

// Pixels of a thread's tile, and values of it: a quarter of the registers, as many as its loads in flight take.
inline constexpr std::int64_t kMostPixelsOfThread = 8;
inline constexpr std::int64_t kMostValuesOfThread = 32;
// Threads of a block of tiles, which take many registers.
inline constexpr std::int64_t kThreadsOfTiles = 128;
// Vectors of outputs side by side: 64 outputs of 16 bytes a thread, four whole lines.
inline constexpr std::int64_t kVectorsOfBlock = 16;
// Registers of a thread with its loads in flight: that holds a tile; that holds a small one, or of an odd shape, which
// needs some for indices; of a block of 256 threads; that calls functions in f64 (the gradient of gelu spilled 48 bytes
// of 128 registers on sm_90, and 40 of 168).
inline constexpr std::int64_t kRegistersOfTile = 128, kRegistersOfSmallTile = 96, kRegistersOfWideBlock = 80,
                              kRegistersOfWideFunctions = 255;
// Words of a tile in f64 and the sums beside it, from which on it takes as many: a variance spilled 8 bytes of 128
// registers (64 words, sm_90).
inline constexpr std::int64_t kManyWordsOfF64 = 64;
// Words that a thread holds: fewer are no tile, and up to so many are a small one, or a small state of a tree.
inline constexpr std::int64_t kTileWords = 24, kFewTileWords = 32, kFewTreeWords = 48;
// Blocks of fewer threads: a multiprocessor runs out of places for blocks first, registers are saved for nothing.
inline constexpr std::int64_t kSmallBlock = 128;
// Fewer blocks leave multiprocessors idle; a part of a cut sum has at least so many products.
inline constexpr std::int64_t kFewBlocks = 256;
inline constexpr std::int64_t kLeastProductsOfPart = 32;
// Panels in shared memory: terms of one, 64 bytes of each pixel, two whole sectors; of a part of a sum, a chain in f32.
inline constexpr std::int64_t kTermsOfPanel = 16, kMostTermsOfPart = 4096;
// Outputs from which on copying what they share costs little beside their products; threads that a block has where rows
// are few, and rows of a block whose outputs are few.
inline constexpr std::int64_t kLeastOutputsOfPanel = 16, kLeastThreadsOfPanel = 64, kMostRowsOfPanel = 256;
// Blocks of outputs that each compute the matrix they multiply: beyond 512 outputs the kernel that stores it is nothing
// beside the product.
inline constexpr std::int64_t kMostCopiesOfMatrix = 4;
// Blocks that sums are cut for: three of 128 threads a multiprocessor, of which one multiplies while others copy. What
// they leave is 16 KiB each.
inline constexpr std::int64_t kBlocksOfParts = 384;
// Weight gradients: channels, or taps of a depthwise one, of a thread; rows of a part, of a thread.
inline constexpr std::int64_t kChannelsOfThread = 8;
inline constexpr std::int64_t kTapsOfThread = 9;
inline constexpr std::int64_t kLeastRowsOfPart = 4;
inline constexpr std::int64_t kLeastRowsOfThread = 1;
// Sums of groups without an anchor: fewer terms are one thread's; steps of a thread before its part is cut further.
// Where multiprocessors are idle, 8 in place of 16 took 0.7 of the time (512 channels of 3136 pixels, H200).
inline constexpr std::int64_t kFewTerms = 64;
inline constexpr std::int64_t kLeastStepsOfThread = 8;
// Blocks of sums, four a multiprocessor of an H100: each leaves a part of all its columns to be joined. On an H200 all
// kernels of ResNet-50's step, bf16, batch 64, took 11.0 ms with 400 or 528, 11.2 with 1024, 11.3 with 2048. Of rows a
// block leaves one element, and where its threads still have so many steps, more blocks end together: sums of 256 MiB
// in 16 bits ran at 80 to 86 % of copying with 528 and at 97 with 2048; of 64 MiB 73 to 76 and 68.
inline constexpr std::int64_t kBlocksOfSums = 528, kBlocksTogether = 4, kBlocksOfRows = 2048, kStepsOfRows = 32;
// A row without vectors that has blocks enough beside it: steps of a thread, whose loads are on their way at once (1003
// elements took 0.64 of the time of a block of 256 threads, in f32 0.85).
inline constexpr std::int64_t kStepsWithoutVectors = 8;
// Lanes of moments in 16 bits: two sums in f32 and two in f64 for each of eight leave room for too few threads.
inline constexpr int kLanesOfMoments = 4;
// What a block may move in a round that reads again what it has just read: several blocks share the 128 to 256 KiB of
// their multiprocessor's L1 (not timed).
inline constexpr std::int64_t kRoundOfBlock = 32 << 10;

// --- which values are stored, beside the bytes that it saves

// R10: an expression longer than this is cut, so that kernels stay readable and compile quickly.
inline constexpr int kMostOps = 96;
// An expression this long is not written into several kernels.
inline constexpr int kMostRepeatedOps = 24;
// Of vectors and numbers, such as a conversion: hidden behind what is read from memory. On CUDA so is a division or a
// root, and the compiler takes it out of a thread's loops.
inline constexpr int kMostOpsPerElement = 2;
// A view is stored where views of it would go on for longer, or would name its elements by a longer index than this:
// whatever is stacked on what, a kernel takes bounded work to make, and its bounds can be proven. A tile computes
// the index itself.
inline constexpr int kMostViews = 8;
inline constexpr int kMostAtoms = 16;
inline constexpr int kMostAtomsInTile = 8;

// An expression longer than this is not computed again for each panel of an anchor.
inline constexpr int kMostPrologueOps = 16;
// So far back it is looked whether a statistic comes from the values that it normalises.
inline constexpr std::size_t kMostLookedAt = 64;

}  // namespace fusejit::scheduler::tuning
