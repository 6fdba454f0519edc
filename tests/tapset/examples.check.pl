# check.pl FACTS CHECKS OUTPUT: whether an output agrees with the facts (lines NAME VALUE). Checks are separated by " && ":
#
#   PATTERN              a line matches
#   #LOW..HIGH PATTERN   the number of lines that match is in this range; #N is exactly N
#   +LOW..HIGH PATTERN   the numbers that the pattern's groups match in all lines have a sum in this range
#
# {NAME} is the fact's value, <LOW..HIGH> in a pattern a number in this range. Exits with 1, and prints the first check that fails, if one does.
use strict;
use warnings;

my ($facts, $checks, $output) = @ARGV;
my (%fact, @lines);
open(my $in, '<', $facts) or die "$facts: $!";
while (<$in>) { my ($name, $value) = split; $fact{$name} = $value if defined $value }
open($in, '<', $output) or die "$output: $!";
@lines = <$in>;

sub holds {
    my ($check) = @_;
    my ($kind, $amount) = $check =~ s/^([#+])(\S+) // ? ($1, $2) : ('', '');
    my ($low, $high) = $check =~ s/<(\d+)\.\.(\d+)>/(\\d+)/ ? ($1, $2) : (undef, undef);
    if ($kind) {
        my $sum = 0;
        for (@lines) {
            my @groups = /$check/ or next;
            if ($kind eq '#') { $sum++ } else { $sum += $_ for @groups }
        }
        my ($least, $most) = split /\.\./, $amount;
        return $sum >= $least && $sum <= ($most // $least);
    }
    for (@lines) {
        next unless /$check/;
        return 1 if !defined $low || ($1 >= $low && $1 <= $high);
    }
    return 0;
}

for my $check (split / && /, $checks) {
    my $missing;
    $check =~ s/\{([a-z][\w.:]*)\}/exists $fact{$1} ? $fact{$1} : ($missing = "the fact $1")/ge;
    next if !$missing && holds($check);
    print "$check\n";
    exit 1;
}
